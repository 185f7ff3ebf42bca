/** What the memory tool promises over standard input and output, it promises over HTTP. */

import { reachOver } from "./support.js";

reachOver("HTTP");
await import("./commands.test.js");
await import("./limits.test.js");
await import("./paths.test.js");
await import("./recall.test.js");
await import("./text.test.js");
