/** What this package calls itself to a server; a test holds it to `package.json`. */

export const NAME = "warm-memory-tool";
export const VERSION = "0.1.0";
