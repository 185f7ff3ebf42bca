/** Texts come back byte for byte, whatever they hold. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { numbered, snippet } from "./listing.js";
import { BINARY, hands } from "./support.js";

const TEXTS = {
  crlf: "one\r\ntwo\r\n",
  "lone carriage returns": "one\rtwo\rthree",
  "mixed line ends": "one\r\ntwo\nthree\r",
  "other line separators": "a\u2028b\u2029c\u0085d\x0be\x0cf",
  "control characters": "nul\x00 bell\x07 escape\x1b[31m del\x7f",
  "byte order mark": "\ufefftext",
  scripts: "日本語 한국어 Ελληνικά العربية עברית ไทย",
  emoji: "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇪🇺",
  "composed and decomposed": "caf\u00e9 cafe\u0301 \ufb01 \u2126",
  noncharacters: "\ufffe \uffff \u{10ffff}",
  "json and escapes": `{"a": "\\u0041\\n", "b": 'x'}`,
  blank: " \t\n \n\n",
};

/** Returns the text of a file as the server's `get` has it, through a session of its own. */
async function stored(folder: string, key: string): Promise<unknown> {
  const client = new Client({ name: "test", version: "0" });
  await client.connect(
    new StdioClientTransport({ command: BINARY, args: ["--data-dir", folder], stderr: "ignore" }),
  );
  try {
    const result = await client.callTool({ name: "get", arguments: { key } });
    return (result.structuredContent as { text?: unknown } | undefined)?.text;
  } finally {
    await client.close();
  }
}

for (const [name, text] of Object.entries(TEXTS)) {
  test(`${name} come back byte for byte`, async (t) => {
    const { create, store, view } = await hands(t);
    assert.equal(await create("/memories/f", text), "File created successfully at: /memories/f");
    const texts = text.split("\n");
    const shown = text.endsWith("\n") ? texts.slice(0, -1) : texts;
    assert.equal(await view("/memories/f"), numbered("/memories/f", shown));
    assert.equal(await stored(store.data, "/memories/f"), text);
  });
}

test("edits keep carriage returns elsewhere", async (t) => {
  const { create, run, store } = await hands(t);
  const path = "/memories/f";
  await create(path, "one\r\ntwo\r\nthree\r\n");
  await run("str_replace", { path, old_str: "two", new_str: "2" });
  await run("insert", { path, insert_line: 1, insert_text: "new\r\n" });
  assert.equal(await stored(store.data, path), "one\r\nnew\r\n2\r\nthree\r\n");
});

test("str_replace matches line ends exactly", async (t) => {
  const { create, refused, run } = await hands(t);
  const path = "/memories/f";
  await create(path, "one\r\ntwo\r\n");
  await refused("str_replace", { path, old_str: "one\ntwo", new_str: "x" });
  assert.equal(await run("str_replace", { path, old_str: "one\r\ntwo", new_str: "x" }), snippet(["x\r", ""]));
});

test("str_replace does not fold composed and decomposed text", async (t) => {
  const { create, refused, run } = await hands(t);
  const path = "/memories/f";
  await create(path, "caf\u00e9");
  await refused("str_replace", { path, old_str: "cafe\u0301", new_str: "x" });
  assert.equal(await run("str_replace", { path, old_str: "caf\u00e9", new_str: "x" }), snippet(["x"]));
});

test("half a surrogate pair is refused by name and the session goes on", async (t) => {
  const { create, memory, refused, view } = await hands(t);
  const error = await refused("create", { path: "/memories/f", file_text: "🚀 ok \ud83d" });
  assert.equal(error.code, "invalid_argument");
  assert.match(error.message, /^Invalid `file_text`.*at character 5;/);
  await refused("view", { path: "/memories/\udc00" });
  await assert.rejects(memory.recall("\ud83d"), { code: "invalid_argument" });
  await create("/memories/f", "ok");
  assert.equal(await view("/memories/f"), numbered("/memories/f", ["ok"]));
});
