/** The strings of a view and of an edit, as the tests expect them. */

export const EMPTY = listing("/memories", [0, "/memories"]);

export function humanSize(bytes: number): string {
  let size = bytes;
  let unit = "B";
  for (const larger of "KMG") {
    if (size < 1024) {
      break;
    }
    size /= 1024;
    unit = larger;
  }
  return (Number.isInteger(size) ? String(size) : size.toFixed(1)) + unit;
}

/** The view of a directory: each entry is a size in bytes and a path, the directory first. */
export function listing(path: string, ...entries: readonly (readonly [number, string])[]): string {
  const head =
    `Here're the files and directories up to 2 levels deep in ${path}, ` +
    "excluding hidden items and node_modules:";
  return [head, ...entries.map(([size, entry]) => `${humanSize(size)}\t${entry}`)].join("\n");
}

export function lines(texts: readonly string[], first = 1): string {
  return texts.map((line, index) => `${String(first + index).padStart(6)}\t${line}`).join("\n");
}

/** The view of a file's lines. */
export function numbered(path: string, texts: readonly string[], first = 1): string {
  return `Here's the content of ${path} with line numbers:\n${lines(texts, first)}`;
}

/** The answer to an edit that shows these lines. */
export function snippet(texts: readonly string[], first = 1): string {
  const head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):";
  return `${head}\n${lines(texts, first)}`;
}
