/** Limits, each at the limit and one beyond, and long views that page. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { WarmMemoryTool } from "warm-memory-tool";

import { EMPTY, lines, numbered } from "./listing.js";
import { hands, handsOf } from "./support.js";

const FILE_BYTES = 32 * 1024;
const VIEW_CHARS = 16_000;
const NAME_BYTES = 128;
const PATH_BYTES = 240;
const LEVELS = 16;
// A view may add its note after the cut.
const NOTE_CHARS = 400;

/** Returns a path of exactly `size` bytes, in names of legal length. */
function pathOf(size: number): string {
  let path = "/memories";
  while (path.length < size) {
    path += `/${"p".repeat(Math.min(100, size - path.length - 1))}`;
  }
  return path;
}

function characters(text: string): number {
  return [...text].length;
}

test("a file of the limit is kept and one byte more is refused", async (t) => {
  const { create, refused, view } = await hands(t);
  await create("/memories/full", "x".repeat(FILE_BYTES));
  const error = await refused("create", { path: "/memories/over", file_text: "x".repeat(FILE_BYTES + 1) });
  assert.equal(error.code, "too_large");
  assert.ok(error.message.includes(String(FILE_BYTES)));
  assert.ok((await view("/memories")).endsWith("\n32K\t/memories\n32K\t/memories/full"));
});

test("the limit counts bytes and not characters", async (t) => {
  const { create, refused } = await hands(t);
  const full = "é".repeat(FILE_BYTES / 2);
  await create("/memories/full", full);
  assert.equal(
    (await refused("create", { path: "/memories/over", file_text: `${full}x` })).code,
    "too_large",
  );
});

test("an edit that would pass the limit is refused and changes nothing", async (t) => {
  const { create, refused, run, view } = await hands(t);
  const path = "/memories/full";
  await create(path, `a${"x".repeat(FILE_BYTES - 2)}\n`);
  const edits = [
    await refused("str_replace", { path, old_str: "a", new_str: "bb" }),
    await refused("insert", { path, insert_line: 0, insert_text: "" }),
  ];
  assert.deepEqual(
    edits.map((error) => error.code),
    ["too_large", "too_large"],
  );
  await run("str_replace", { path, old_str: "a", new_str: "b" });
  assert.ok((await view("/memories")).endsWith("\n32K\t/memories\n32K\t/memories/full"));
});

test("maxFileBytes lowers the limit", async (t) => {
  const { create, refused } = await hands(t, { maxFileBytes: 10 });
  await create("/memories/ten", "x".repeat(10));
  const error = await refused("create", { path: "/memories/eleven", file_text: "x".repeat(11) });
  assert.equal(error.code, "too_large");
  assert.match(error.message, /\b10\b/);
});

test("maxFileBytes cannot raise the limit", async (t) => {
  const { refused } = await hands(t, { maxFileBytes: 10 * FILE_BYTES });
  const error = await refused("create", { path: "/memories/f", file_text: "x".repeat(FILE_BYTES + 1) });
  assert.equal(error.code, "too_large");
});

test("the server can be started with a higher limit", async (t) => {
  const { create, refused } = await hands(t, { args: ["--max-text-bytes", String(4 * FILE_BYTES)] });
  await create("/memories/f", "x".repeat(4 * FILE_BYTES));
  const error = await refused("create", { path: "/memories/g", file_text: "x".repeat(4 * FILE_BYTES + 1) });
  assert.equal(error.code, "too_large");
});

for (const letter of ["n", "é"]) {
  test(`a name of the limit in ${letter} is kept and one more is refused`, async (t) => {
    const { create, refused } = await hands(t);
    const name = letter.repeat(NAME_BYTES / Buffer.byteLength(letter));
    await create(`/memories/${name}`, "x");
    const error = await refused("create", { path: `/memories/${name}${letter}`, file_text: "x" });
    assert.match(error.message, /^Invalid path/);
  });
}

test("a path of the limit is kept and one more is refused", async (t) => {
  const { create, refused, view } = await hands(t);
  const fits = pathOf(PATH_BYTES);
  assert.equal(fits.length, PATH_BYTES);
  await create(fits, "x");
  assert.equal(await view(fits), numbered(fits, ["x"]));
  const error = await refused("create", { path: pathOf(PATH_BYTES + 1), file_text: "x" });
  assert.match(error.message, /^Invalid path/);
});

test("levels up to the limit are kept and one more is refused", async (t) => {
  const { create, refused, view } = await hands(t);
  const fits = `/memories${"/d".repeat(LEVELS)}`;
  await create(fits, "x");
  assert.equal(await view(fits), numbered(fits, ["x"]));
  assert.match((await refused("create", { path: `${fits}/d`, file_text: "x" })).message, /^Invalid path/);
});

test("a rename that would pass a limit below is refused and changes nothing", async (t) => {
  const { create, refused, view } = await hands(t);
  await create(`/memories/a${"/d".repeat(LEVELS - 1)}`, "x");
  const before = await view("/memories");
  const error = await refused("rename", { old_path: "/memories/a", new_path: "/memories/b/a" });
  assert.match(error.code, /^(invalid_argument|too_large)$/);
  assert.equal(await view("/memories"), before);
});

/** Views a file to its end, page by page as the notes say. */
async function viewPages(memory: WarmMemoryTool, path: string, limit: number): Promise<string[]> {
  const pages: string[] = [];
  const seen = new Set<number>();
  let range: number[] | undefined;
  for (;;) {
    const page = await memory.execute({ command: "view", path, ...(range && { view_range: range }) });
    assert.ok(characters(page) <= limit + NOTE_CHARS);
    const note = /\n+\[[^\t\n]*view_range \[(\d+), -1\][^\t\n]*$/.exec(page);
    if (note === null) {
      return [...pages, page];
    }
    pages.push(page.slice(0, note.index));
    const line = Number(note[1]);
    assert.ok(!seen.has(line), `the note sends back to line ${line}`);
    seen.add(line);
    range = [line, -1];
  }
}

test("numbered lines of maxViewChars are shown whole and one character less cuts them", async (t) => {
  const { store, memory, create } = await hands(t);
  const texts = Array.from({ length: 150 }, () => "x".repeat(93));
  await create("/memories/f", texts.join("\n"));
  const body = lines(texts);
  await memory.close();
  const whole = await store.connect({ maxViewChars: body.length });
  assert.equal(await handsOf(store, whole).view("/memories/f"), numbered("/memories/f", texts));
  const cut = await store.connect({ maxViewChars: body.length - 1 });
  const shown = await handsOf(store, cut).view("/memories/f");
  assert.ok(shown.startsWith(`${numbered("/memories/f", texts.slice(0, -1))}\n\n[`));
  assert.match(shown, /view_range \[150, -1\][^\n]*\]$/);
});

for (const limit of [VIEW_CHARS, 1000]) {
  test(`a view longer than ${limit} is cut at lines and its notes lead to the end`, async (t) => {
    const { create, memory } = await hands(t, { maxViewChars: limit });
    const texts = Array.from({ length: 1000 }, (_, index) => `${index + 1}:${"x".repeat((index + 1) % 50)}`);
    await create("/memories/long", `${texts.join("\n")}\n`);
    const pages = await viewPages(memory, "/memories/long", limit);
    assert.ok(pages.length > 1);
    const shown = pages.flatMap((page) => {
      const [header, ...body] = page.split("\n");
      assert.equal(header, "Here's the content of /memories/long with line numbers:");
      return body;
    });
    assert.equal(shown.join("\n"), lines(texts));
  });
}

test("maxViewChars cannot raise the limit", async (t) => {
  const { create, view } = await hands(t, { maxViewChars: 10 * VIEW_CHARS });
  await create("/memories/f", "line\n".repeat(6000));
  assert.ok(characters(await view("/memories/f")) <= VIEW_CHARS + NOTE_CHARS);
});

test("a line longer than the limit is cut between characters and paging goes on", async (t) => {
  const { create, memory } = await hands(t, { maxViewChars: 1000 });
  await create("/memories/f", ["before", "é🚀".repeat(3000), "after"].join("\n"));
  const shown = (await viewPages(memory, "/memories/f", 1000)).join("\n");
  assert.ok(shown.includes("     1\tbefore"));
  assert.ok(shown.includes("     2\té🚀é🚀"));
  assert.ok(shown.includes("     3\tafter"));
  assert.ok(!shown.includes("\ufffd") && shown.isWellFormed());
});

test("a directory view of many files stays bounded", async (t) => {
  const { create, view } = await hands(t, { maxViewChars: 2000 });
  for (let number = 0; number < 200; number++) {
    await create(`/memories/file-${String(number).padStart(4, "0")}.md`, "x");
  }
  const shown = await view("/memories");
  assert.ok(characters(shown) <= 2000 + NOTE_CHARS);
  assert.ok(shown.startsWith(EMPTY.slice(0, EMPTY.indexOf("\n"))));
});
