/** Which of this process's environment variables a server gets to see. */

import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";

const PREFIXES = ["WARM_", "XDG_", "LC_"];
const NAMES = new Set(["LANG", "LANGUAGE", "RUST_BACKTRACE", "RUST_LOG", "TEMP", "TMP", "TMPDIR", "TZ"]);
const PASSPHRASE_OPTION = "--passphrase-env";
const PASSPHRASE_VARIABLE = "WARM_MCP_PASSPHRASE_ENV";

/**
 * Returns the environment to start a server in.
 *
 * It holds what finds a home, a locale and a configuration, everything that starts with `WARM_`, and
 * the variable that holds the passphrase if `args` or the environment name one; `extra` goes on top.
 * Other variables stay here, so that a server never sees the keys of other services.
 */
export function serverEnvironment(
  extra: Readonly<Record<string, string>>,
  args: readonly string[],
): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      (NAMES.has(entry[0]) || PREFIXES.some((prefix) => entry[0].startsWith(prefix))),
  );
  const environment = { ...getDefaultEnvironment(), ...Object.fromEntries(inherited), ...extra };
  const name = passphraseVariable(args) ?? environment[PASSPHRASE_VARIABLE];
  const passphrase = name ? process.env[name] : undefined;
  return name && passphrase !== undefined ? { [name]: passphrase, ...environment } : environment;
}

function passphraseVariable(args: readonly string[]): string | undefined {
  const joined = args.find((arg) => arg.startsWith(`${PASSPHRASE_OPTION}=`));
  if (joined !== undefined) {
    return joined.slice(PASSPHRASE_OPTION.length + 1);
  }
  const at = args.indexOf(PASSPHRASE_OPTION);
  return at < 0 ? undefined : args[at + 1];
}
