/**
 * Random command sequences, on the SDK's own filesystem tool and on ours: the same answers.
 *
 * Where the two are meant to differ, `DIFFERENCES` says so and why. What changes an answer only is applied
 * to the SDK's answer; what would leave another file behind is kept out of the sequences and shown by a
 * test of its own. Anything else that differs is a fault.
 */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";

import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { BetaLocalFilesystemMemoryTool, betaMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";

import { humanSize, numbered } from "./listing.js";
import type { Hands, Input } from "./support.js";
import { hands, handsOf, refusal } from "./support.js";

const STEPS = 300;
const SEEDS = [1, 2, 3, 4, 5, 6];

const DIFFERENCES = {
  sizes: "a directory is as large as the files below it; the SDK shows what its entry takes on the disk",
  "last line": "a trailing newline adds no empty line to a view; the SDK shows one",
  "empty directories": "directories exist only while they hold a file; the SDK keeps empty ones",
  "empty old_str": "replacing nothing is refused with a message of our own; the SDK finds it in every line",
  "path rules":
    "hidden, empty, dot and percent-encoded segments, backslashes, control characters and names that " +
    "only begin like /memories are refused; the SDK accepts them or folds them away",
  "view range":
    "a range that is not two numbers, or that ends before -1, is refused; the SDK ignores the first and " +
    "counts the second from the end",
  "os errors":
    "a path under a file, and a directory moved into itself, are tool errors with a message of our own; " +
    "the SDK lets the operating system's error through",
  "insert range":
    "an `insert_line` outside the file is refused with the documented message and range; the SDK's message " +
    "is longer, and its range counts the empty line after a trailing newline",
} as const;

/** What a command came to: its result, its error, or just that it must be refused in words of our own. */
type Outcome = { readonly text: string } | { readonly error: string } | { readonly refused: true };
const REFUSED = { refused: true } as const;

/** Numbers that look random and are the same for a seed (mulberry32). */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  between(first: number, last: number): number {
    return first + Math.floor(this.unit() * (last - first + 1));
  }

  of<T>(choices: readonly [T, ...T[]]): T {
    return choices[Math.floor(this.unit() * choices.length)] ?? choices[0];
  }
}

/** The SDK's tool on a temporary directory, with our differences applied to its answers. */
class Reference {
  readonly used = new Set<keyof typeof DIFFERENCES>();
  readonly #folder = mkdtempSync(join(tmpdir(), "warm-ts-reference-"));
  readonly #tool: ReturnType<typeof betaMemoryTool>;

  private constructor(test: TestContext) {
    test.after(() => rmSync(this.#folder, { recursive: true, force: true }));
    this.#tool = betaMemoryTool(new BetaLocalFilesystemMemoryTool(this.#folder));
  }

  static async start(test: TestContext): Promise<Reference> {
    const reference = new Reference(test);
    await BetaLocalFilesystemMemoryTool.init(reference.#folder);
    return reference;
  }

  /** Runs a command as it is. */
  async raw(command: Input): Promise<string> {
    return String(await this.#tool.run(command as never));
  }

  /** Returns what our tool has to answer. */
  async run(command: Input): Promise<Outcome> {
    const path = String(command.path ?? "");
    if (pathsOf(command).some(onlyWeRefuse)) {
      this.used.add("path rules");
      return REFUSED;
    }
    if (command.old_str === "" && this.#isFile(path)) {
      this.used.add("empty old_str");
      return REFUSED;
    }
    if (command.view_range !== undefined && this.#isFile(path) && !isRange(command.view_range as number[])) {
      this.used.add("view range");
      return REFUSED;
    }
    if (command.command === "insert" && this.#isFile(path)) {
      const line = Number(command.insert_line);
      const count = lineCount(readFileSync(this.#local(path), "utf8"));
      if (line < 0 || line > count) {
        this.used.add("insert range");
        return {
          error: `Invalid \`insert_line\` parameter: ${line}. It should be within the range [0, ${count}].`,
        };
      }
    }
    let text: string;
    try {
      text = await this.raw(command);
    } catch (error) {
      this.#prune();
      assert.ok(error instanceof Error);
      if ("code" in error) {
        this.used.add("os errors");
        return REFUSED;
      }
      return { error: error.message };
    }
    this.#prune();
    if (command.command !== "view") {
      return { text };
    }
    return { text: this.#isFile(path) ? this.#fileView(text, path) : this.#directoryView(text) };
  }

  /** Every file and its text. */
  files(): Map<string, string> {
    const root = join(this.#folder, "memories");
    const found = readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => `/memories/${name}`);
    const files = found.filter((path) => this.#isFile(path)).sort();
    return new Map(files.map((path) => [path, readFileSync(this.#local(path), "utf8")]));
  }

  #local(path: string): string {
    return join(this.#folder, path);
  }

  #isFile(path: string): boolean {
    try {
      return path.startsWith("/memories") && statSync(this.#local(path)).isFile();
    } catch {
      return false;
    }
  }

  /** Removes directories that hold no file, the root apart. */
  #prune(): void {
    const root = join(this.#folder, "memories");
    const found = readdirSync(root, { recursive: true, withFileTypes: true });
    const folders = found
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort((one, other) => other.length - one.length);
    for (const folder of folders) {
      if (existsSync(folder) && readdirSync(folder).length === 0) {
        this.used.add("empty directories");
        rmdirSync(folder);
      }
    }
  }

  #directoryView(text: string): string {
    this.used.add("sizes");
    const [header, ...entries] = text.split("\n");
    const resized = entries.map((entry) => {
      const path = entry.slice(entry.indexOf("\t") + 1);
      return `${humanSize(this.#size(path))}\t${path}`;
    });
    return [header, ...resized].join("\n");
  }

  #size(path: string): number {
    const folder = path.endsWith("/") ? path : `${path}/`;
    const below = [...this.files()].filter(([file]) => file === path || file.startsWith(folder));
    return below.reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0);
  }

  #fileView(text: string, path: string): string {
    const content = readFileSync(this.#local(path), "utf8");
    const phantom = `${String(content.split("\n").length).padStart(6)}\t`;
    if ((content === "" || content.endsWith("\n")) && text.endsWith(`\n${phantom}`)) {
      this.used.add("last line");
      const without = text.slice(0, -phantom.length);
      return without.endsWith(":\n") ? without : without.slice(0, -1);
    }
    return text;
  }
}

function pathsOf(command: Input): string[] {
  return [command.path, command.old_path, command.new_path].filter((path) => typeof path === "string");
}

function isRange(range: readonly number[]): boolean {
  return range.length === 2 && (range[1] ?? 0) >= -1;
}

function lineCount(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** Whether a path breaks one of our rules, and none of the SDK's. */
function onlyWeRefuse(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
  const legal = /^\/memories(\/(?!\.)[^/\\%\x00-\x1f]+)*$/;
  const stays = normalize(`/x/memories${path.slice("/memories".length)}`).startsWith("/x/memories");
  return path.startsWith("/memories") && stays && !legal.test(path);
}

const SEGMENTS = ["a", "b", "a.txt", "a-b", "é", "a..b", "Z"] as const;
const ODD_PATHS = [
  "/memoriesX",
  "/memories_backup/f.txt",
  "/memories/",
  "/memories//a",
  "/memories/./a",
  "/memories/.a",
  "/memories/a/",
  "/memories/%2e%2e/a",
  "/memories/a\\b",
  "/memories/a\tb",
  "/memories/a/../b",
] as const;
const REFUSED_BY_BOTH = [
  "/",
  "",
  "/etc/passwd",
  "memories/a",
  "/memories/..",
  "/memories/../x",
  "/memories/a/../../x",
] as const;
const WORDS = ["a", "aa", "b", "\n", "a\n", "x\r\n", "é", "🚀", ""] as const;
const COMMANDS = [
  "view",
  "view",
  "create",
  "create",
  "str_replace",
  "str_replace",
  "insert",
  "delete",
  "rename",
] as const;

function randomPath(chance: Chance): string {
  const roll = chance.unit();
  if (roll < 0.03) {
    return chance.of(ODD_PATHS);
  }
  if (roll < 0.06) {
    return chance.of(REFUSED_BY_BOTH);
  }
  if (roll < 0.1) {
    return "/memories";
  }
  const levels = chance.of([1, 1, 1, 2, 2, 3, 4]);
  return `/memories/${Array.from({ length: levels }, () => chance.of(SEGMENTS)).join("/")}`;
}

function randomText(chance: Chance, longest: number): string {
  return Array.from({ length: chance.between(0, longest) }, () => chance.of(WORDS)).join("");
}

/** Returns a command, more often than not about a file that exists. */
function randomCommand(chance: Chance, files: ReadonlyMap<string, string>): Input {
  const known = [...files.keys()];
  const path = (): string => {
    const [first, ...more] = known;
    if (first === undefined || chance.unit() >= 0.7) {
      return randomPath(chance);
    }
    const given = chance.of([first, ...more]);
    return chance.unit() < 0.85 ? given : given.slice(0, given.lastIndexOf("/"));
  };
  const command = chance.of(COMMANDS);
  switch (command) {
    case "view": {
      const range = [chance.between(-1, 8), chance.of([-1, chance.between(-2, 9)])];
      if (chance.unit() < 0.05) {
        range.push(3);
      }
      return { command, path: path(), ...(chance.unit() < 0.4 && { view_range: range }) };
    }
    case "create": {
      const fresh = chance.unit() < 0.8 ? randomPath(chance) : `${path()}/${chance.of(SEGMENTS)}`;
      return { command, path: fresh, file_text: randomText(chance, 14) };
    }
    case "str_replace": {
      const target = path();
      const old_str = oldText(chance, files.get(target) ?? "");
      return { command, path: target, old_str, new_str: randomText(chance, 4) };
    }
    case "insert": {
      const target = path();
      const text = files.get(target) ?? "";
      // The two end a file differently after an insert, unless it ended with one newline: see below.
      const ended = text === "" || /[^\n]\n$/.test(text);
      const insert_line = ended ? chance.between(-1, 7) : -1;
      const insert_text = (randomText(chance, 4).replace(/\n+$/, "") || "x") + chance.of(["", "\n"]);
      return { command, path: target, insert_line, insert_text };
    }
    case "delete":
      return { command, path: path() };
    case "rename": {
      const fresh = [
        randomPath(chance),
        randomPath(chance),
        path(),
        `${path()}/${chance.of(SEGMENTS)}`,
      ] as const;
      return { command, old_path: path(), new_path: chance.of(fresh) };
    }
  }
}

/** A text to replace, one that both tools look for in the same way: see below. */
function oldText(chance: Chance, text: string): string {
  const characters = [...text];
  const start = chance.between(0, characters.length);
  const old =
    chance.unit() < 0.8
      ? characters.slice(start, start + chance.between(1, 4)).join("")
      : randomText(chance, 2);
  const single = old.split("\n")[0] ?? "";
  const twiceInALine = text.split("\n").some((line) => line.indexOf(single) !== line.lastIndexOf(single));
  return single !== "" && twiceInALine ? "nowhere" : single;
}

async function outcome(command: Input, ours: Hands): Promise<Outcome> {
  try {
    return { text: await ours.memory.execute(command) };
  } catch (error) {
    assert.ok(error instanceof ToolError, String(error));
    return { error: error.message };
  }
}

for (const seed of SEEDS) {
  test(`random commands come to the same as on the SDK's filesystem tool, seed ${seed}`, async (t) => {
    const reference = await Reference.start(t);
    const ours = await hands(t);
    const chance = new Chance(seed);
    const history: Input[] = [];
    for (let step = 0; step < STEPS; step++) {
      const command = randomCommand(chance, reference.files());
      history.push(command);
      const expected = await reference.run(command);
      const given = await outcome(command, ours);
      const recent = history.slice(-12).map((it) => JSON.stringify(it));
      const said = `${recent.join("\n")}\nours: ${JSON.stringify(given)}\nexpected: ${JSON.stringify(expected)}`;
      if ("refused" in expected) {
        assert.ok("error" in given && given.error !== "", said);
      } else {
        assert.deepEqual(given, expected, said);
      }
    }
    await ours.memory.close();
    const again = handsOf(ours.store, await ours.store.connect());
    for (const [path] of reference.files()) {
      assert.deepEqual(
        await outcome({ command: "view", path }, again),
        await reference.run({ command: "view", path }),
      );
    }
    const whole = await reference.run({ command: "view", path: "/memories" });
    assert.deepEqual(await outcome({ command: "view", path: "/memories" }, again), whole);
  });
}

test("every difference that is listed is met by the random commands", async (t) => {
  const used = new Set<string>();
  for (const seed of SEEDS) {
    const reference = await Reference.start(t);
    const chance = new Chance(seed);
    for (let step = 0; step < STEPS; step++) {
      await reference.run(randomCommand(chance, reference.files()));
    }
    for (const name of reference.used) {
      used.add(name);
    }
  }
  assert.deepEqual([...used].sort(), Object.keys(DIFFERENCES).sort());
});

test("difference: a text of several lines is found; the SDK looks for it line by line", async (t) => {
  const [ours, reference] = [await hands(t), await Reference.start(t)];
  const create = { command: "create", path: "/memories/f", file_text: "one\ntwo\n" };
  const edit = { command: "str_replace", path: "/memories/f", old_str: "one\ntwo", new_str: "x" };
  await Promise.all([ours.memory.execute(create), reference.raw(create)]);
  await assert.rejects(reference.raw(edit), /did not appear verbatim/);
  await ours.memory.execute(edit);
  assert.equal(await ours.view("/memories/f"), numbered("/memories/f", ["x"]));
});

test("difference: a text twice in one line is not unique; the SDK replaces the first", async (t) => {
  const [ours, reference] = [await hands(t), await Reference.start(t)];
  const create = { command: "create", path: "/memories/f", file_text: "same same" };
  const edit = { command: "str_replace", path: "/memories/f", old_str: "same", new_str: "x" };
  await Promise.all([ours.memory.execute(create), reference.raw(create)]);
  await reference.raw(edit);
  assert.equal(reference.files().get("/memories/f"), "x same");
  assert.match((await refusal(ours.memory.execute(edit))).message, /Multiple occurrences of old_str `same`/);
});

test("difference: a file ends with one newline after an insert; the SDK leaves its end as it was", async (t) => {
  const [ours, reference] = [await hands(t), await Reference.start(t)];
  for (const [path, file_text, kept, bytes] of [
    ["/memories/bare", "one", "one\ntwo", 8],
    ["/memories/blank", "one\n\n", "one\ntwo\n\n", 8],
  ] as const) {
    const create = { command: "create", path, file_text };
    const edit = { command: "insert", path, insert_line: 1, insert_text: "two" };
    for (const command of [create, edit]) {
      await Promise.all([ours.memory.execute(command), reference.raw(command)]);
    }
    assert.equal(reference.files().get(path), kept);
    assert.ok((await ours.view("/memories")).endsWith(`\n${bytes}B\t${path}`));
  }
});

test("difference: new_str that is left out deletes; the SDK writes the word undefined", async (t) => {
  const [ours, reference] = [await hands(t), await Reference.start(t)];
  const create = { command: "create", path: "/memories/f", file_text: "keep drop" };
  const edit = { command: "str_replace", path: "/memories/f", old_str: " drop" };
  for (const command of [create, edit]) {
    await Promise.all([ours.memory.execute(command), reference.raw(command)]);
  }
  assert.equal(reference.files().get("/memories/f"), "keepundefined");
  assert.equal(await ours.view("/memories/f"), numbered("/memories/f", ["keep"]));
});
