/** The SDK's tool runner, end to end: a scripted model on one side, a real server on the other. */

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import type { WarmMemoryTool } from "warm-memory-tool";

import { EMPTY, listing, numbered, snippet } from "./listing.js";
import { ScriptedEndpoint, say, use } from "./scripted_endpoint.js";
import { eventually, hands, isRunning, Store, withServer } from "./support.js";

const NOTES = "/memories/customers/acme.md";

/** Runs a conversation to its end and returns the last text. */
async function converse(endpoint: ScriptedEndpoint, memory: WarmMemoryTool): Promise<string> {
  const client = new Anthropic({ apiKey: "none", baseURL: endpoint.url, maxRetries: 0 });
  const final = await client.beta.messages.toolRunner({
    model: "claude-sonnet-5-5",
    max_tokens: 1024,
    messages: [{ role: "user", content: "Remember that Acme Corp prefers email follow-ups." }],
    tools: [memory.asTool(), memory.recallTool()],
  });
  return final.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function outcomes(endpoint: ScriptedEndpoint): (readonly [boolean, unknown])[] {
  return endpoint.toolResults().map((result) => [result.is_error === true, result.content]);
}

test("the runner creates, edits, recalls, and is refused a traversal", async (t) => {
  const { memory } = await hands(t);
  await using endpoint = await ScriptedEndpoint.start(
    use(["memory", { command: "view", path: "/memories" }]),
    use(["memory", { command: "create", path: NOTES, file_text: "# Acme\nprefers phone\n" }]),
    use(["memory", { command: "str_replace", path: NOTES, old_str: "phone", new_str: "email follow-ups" }]),
    use(["memory", { command: "insert", path: NOTES, insert_line: 2, insert_text: "met in May" }]),
    use(["memory_recall", { query: "how does Acme like follow-ups?", k: 1 }]),
    use(["memory", { command: "view", path: "/memories/../etc/passwd" }]),
    use(
      ["memory", { command: "create", path: NOTES, file_text: "again" }],
      ["memory", { command: "rename", old_path: NOTES, new_path: "/memories/acme.md" }],
    ),
    use(["memory", { command: "delete", path: "/memories/acme.md" }]),
    use(["memory_recall", { query: "Acme" }]),
    say("done"),
  );
  assert.equal(await converse(endpoint, memory), "done");
  const recalled = String(endpoint.toolResults()[4]?.content);
  assert.ok(recalled.startsWith(`Found 1 matching memory file, most relevant first:\n\n1. ${NOTES} (score `));
  assert.ok(recalled.includes("prefers email follow-ups"));
  assert.deepEqual(outcomes(endpoint), [
    [false, EMPTY],
    [false, `File created successfully at: ${NOTES}`],
    [false, snippet(["# Acme", "prefers email follow-ups", ""])],
    [false, `The file ${NOTES} has been edited.`],
    [false, recalled],
    [true, "Path /memories/../etc/passwd would escape /memories directory"],
    [true, `File ${NOTES} already exists`],
    [false, `Successfully renamed ${NOTES} to /memories/acme.md`],
    [false, "Successfully deleted /memories/acme.md"],
    [false, "No memory file matches: Acme\nTry other words, or view /memories to see which files there are."],
  ]);
  const [first] = endpoint.requests;
  assert.ok(first?.tools);
  const offers = endpoint.requests.flatMap((request) => (request.tools ? [request.tools] : []));
  for (const [memoryTool, recallTool, ...more] of offers) {
    assert.deepEqual(memoryTool, { type: "memory_20250818", name: "memory" });
    assert.equal(recallTool?.name, "memory_recall");
    assert.ok(recallTool.description);
    const schema = recallTool.input_schema as { properties: object };
    assert.deepEqual(Object.keys(schema.properties), ["query", "k"]);
    assert.deepEqual(more, []);
  }
});

test("what one conversation wrote the next one reads", async (t) => {
  const store = new Store(t);
  const first = await store.connect();
  await using writing = await ScriptedEndpoint.start(
    use(["memory", { command: "create", path: NOTES, file_text: "prefers email\n" }]),
    say("noted"),
  );
  await converse(writing, first);
  await first.close();
  await using reading = await ScriptedEndpoint.start(
    use(["memory", { command: "view", path: "/memories" }], ["memory", { command: "view", path: NOTES }]),
    say("email it is"),
  );
  assert.equal(await converse(reading, await store.connect()), "email it is");
  assert.deepEqual(outcomes(reading), [
    [false, listing("/memories", [14, "/memories"], [14, "/memories/customers/"], [14, NOTES])],
    [false, numbered(NOTES, ["prefers email"])],
  ]);
});

test("input that no command fits is an error for the model, and the run goes on", async (t) => {
  const { memory } = await hands(t);
  await using endpoint = await ScriptedEndpoint.start(
    use(["memory", { command: "append", path: NOTES }]),
    use(["memory", { path: NOTES }]),
    use(["memory", { command: "create", path: NOTES }]),
    use(["memory_recall", { k: 3 }]),
    // Members of the tool that are no commands are out of a model's reach.
    use(["memory", { command: "close" }]),
    use(["memory", { command: "clearAllMemory" }]),
    use(["memory", { command: "constructor" }]),
    use(["memory", { command: "create", path: NOTES, file_text: "fine", comment: "ignored" }]),
    say("done"),
  );
  assert.equal(await converse(endpoint, memory), "done");
  assert.deepEqual(
    outcomes(endpoint).map(([refused]) => refused),
    [true, true, true, true, true, true, true, false],
  );
  const known = "It must be one of view, create, str_replace, insert, delete, rename";
  assert.equal(endpoint.toolResults()[0]?.content, `Unknown memory command: append. ${known}`);
  assert.equal(endpoint.toolResults()[4]?.content, `Unknown memory command: close. ${known}`);
});

test("a server that dies during a run is an error for the model", async (t) => {
  const store = new Store(t);
  const { memory, pid } = await withServer(() => store.connect());
  await memory.execute({ command: "create", path: NOTES, file_text: "x" });
  process.kill(pid, "SIGKILL");
  assert.ok(await eventually(() => !isRunning(pid)));
  await using endpoint = await ScriptedEndpoint.start(
    use(["memory", { command: "view", path: NOTES }]),
    say("a pity"),
  );
  assert.equal(await converse(endpoint, memory), "a pity");
  const [[refused, content] = []] = outcomes(endpoint);
  assert.equal(refused, true);
  assert.match(String(content), /has stopped\. Connect again/);
});

test("what is passed to asTool goes into the definition", async (t) => {
  const { memory } = await hands(t);
  const tool = memory.asTool({ cache_control: { type: "ephemeral" } });
  assert.deepEqual(JSON.parse(JSON.stringify(tool)), {
    cache_control: { type: "ephemeral" },
    type: "memory_20250818",
    name: "memory",
  });
});
