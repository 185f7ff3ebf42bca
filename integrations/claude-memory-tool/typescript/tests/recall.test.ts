/** Recall through the package: what is found, in which order, and what a model is told. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { hands, paths, refusal } from "./support.js";

test("recall finds the files and says where", async (t) => {
  const { create, memory } = await hands(t);
  await create("/memories/people/acme.md", "# Acme\n\nAcme Corp prefers email follow-ups.\n");
  await create("/memories/people/globex.md", "# Globex\n\nGlobex wants phone calls.\n");
  const results = await memory.recall("how does Acme like follow-ups");
  assert.deepEqual(paths(results), ["/memories/people/acme.md"]);
  assert.deepEqual([results.mode, results.total, results.truncated], ["lexical", 1, false]);
  const [hit] = results;
  assert.ok(hit);
  assert.ok(hit.score > 0);
  assert.ok(hit.excerpt.includes("Acme Corp prefers email"));
  assert.ok(1 <= hit.lines[0] && hit.lines[0] <= 3 && 3 <= hit.lines[1]);
  assert.ok(!Number.isNaN(Date.parse(hit.updatedAt)));
  assert.notEqual(hit.version, "");
  assert.equal(hit.semanticScore, null);
});

test("recall returns the k best and says how many there were", async (t) => {
  const { create, memory } = await hands(t);
  for (let number = 0; number < 8; number++) {
    await create(`/memories/${number}`, "ferry ".repeat(number + 1) + "boat ".repeat(8 - number));
  }
  const results = await memory.recall("ferry", 3);
  assert.deepEqual([results.length, results.total, results.truncated], [3, 8, true]);
  const scores = results.map((hit) => hit.score);
  assert.deepEqual(
    scores,
    [...scores].sort((one, other) => other - one),
  );
  assert.equal((await memory.recall("ferry")).length, 5);
});

test("a write is found by the next recall and what it replaced is not", async (t) => {
  const { create, memory, run } = await hands(t);
  await create("/memories/f", "the ferry leaves at noon");
  assert.equal((await memory.recall("noon")).length, 1);
  await run("str_replace", { path: "/memories/f", old_str: "noon", new_str: "dusk" });
  assert.deepEqual([(await memory.recall("noon")).length, (await memory.recall("dusk")).length], [0, 1]);
  await run("rename", { old_path: "/memories/f", new_path: "/memories/g" });
  assert.deepEqual(paths(await memory.recall("dusk")), ["/memories/g"]);
  await run("delete", { path: "/memories/g" });
  assert.equal((await memory.recall("dusk")).length, 0);
});

test("recall finds a passage deep in a long file", async (t) => {
  const { create, memory } = await hands(t);
  const texts = Array.from({ length: 400 }, (_, index) => `line ${index + 1} speaks of ordinary weather`);
  texts[299] = "here the treasure is buried under the lighthouse";
  await create("/memories/long", texts.join("\n"));
  const [hit] = await memory.recall("treasure lighthouse");
  assert.ok(hit);
  assert.ok(hit.lines[0] <= 300 && 300 <= hit.lines[1]);
  assert.ok(hit.excerpt.includes("treasure"));
});

for (const [text, query] of [
  ["Zoë naïvely ordered a crème brûlée", "creme brulee"],
  ["we deploy on Fridays", "deployment friday"],
  ["東京の港から船が出る", "港"],
  ["the link runs at 12 GB/s", "GB/s"],
  ["deploy 🚀 friday", "🚀"],
] as const) {
  test(`recall finds ${text} by ${query}`, async (t) => {
    const { create, memory } = await hands(t);
    await create("/memories/wanted", text);
    await create("/memories/other", "something else entirely, about gardens");
    assert.deepEqual(paths(await memory.recall(query)), ["/memories/wanted"]);
  });
}

test("no query is a syntax error", async (t) => {
  const { create, memory } = await hands(t);
  await create("/memories/f", "some ordinary words");
  for (const query of ["!!!", '"unclosed', "a AND (", "title:x OR -y", "*", "\\", "{}", "\0", "\u200d"]) {
    assert.ok((await memory.recall(query)).length <= 1);
  }
});

test("a k out of range is an invalid argument", async (t) => {
  const { memory } = await hands(t);
  for (const k of [0, -1, 51, 1.5]) {
    assert.equal((await refusal(memory.recall("x", k))).code, "invalid_argument");
  }
});

test("the recall tool tells a model what was found", async (t) => {
  const { create, memory } = await hands(t);
  await create("/memories/acme.md", "intro\nAcme Corp prefers email\n");
  const tool = memory.recallTool();
  assert.ok("input_schema" in tool);
  assert.equal(tool.name, "memory_recall");
  assert.deepEqual(tool.input_schema.required, ["query"]);
  const told = await tool.run({ query: "acme email" });
  assert.ok(typeof told === "string");
  assert.match(
    told,
    /^Found 1 matching memory file, most relevant first:\n\n1\. \/memories\/acme\.md \(score \d+\.\d{3}, lines 1-2\)\n/,
  );
  assert.ok(told.includes("\n   Acme Corp prefers email"));
  for (let number = 0; number < 3; number++) {
    await create(`/memories/${number}`, "Acme");
  }
  assert.match(String(await tool.run({ query: "acme", k: 2 })), /^Found 2 of 4 matching memory files, /);
  assert.equal(
    await tool.run({ query: "zyzzyva" }),
    "No memory file matches: zyzzyva\nTry other words, or view /memories to see which files there are.",
  );
});
