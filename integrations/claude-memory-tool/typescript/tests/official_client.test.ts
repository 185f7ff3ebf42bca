/** The official MCP clients drive the server itself: every tool, over each transport and revision. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { describe, test } from "node:test";

import type { VersionNegotiationMode } from "@modelcontextprotocol/client";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as WholeClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as WholeStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as WholeHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as WholeTransport } from "@modelcontextprotocol/sdk/shared/transport.js";

import { serve } from "./server.js";
import { Store } from "./support.js";

const TOOLS = ["export", "forget", "get", "list", "memory", "recall", "remember", "stats"];
const NAME = { name: "official-client-test", version: "1" };
const TEMPLATE = "warm://memory/{key}";

type Fields = Readonly<Record<string, unknown>>;

interface Called {
  readonly isError?: boolean | undefined;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: Fields | undefined;
}

interface Argument {
  readonly name: string;
  readonly required?: boolean | undefined;
}

/** What both clients have, as far as it is used here. */
interface AnyClient {
  close(): Promise<void>;
  getServerVersion(): { readonly name: string } | undefined;
  listTools(): Promise<{
    tools: {
      name: string;
      description?: string | undefined;
      inputSchema: { type: string };
      annotations?: { readOnlyHint?: boolean | undefined } | undefined;
    }[];
  }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  readResource(params: { uri: string }): Promise<{ contents: { uri: string }[] }>;
  listPrompts(): Promise<{
    prompts: { name: string; description?: string | undefined; arguments?: Argument[] | undefined }[];
  }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: unknown[] }>;
  complete(params: {
    ref: { type: "ref/resource"; uri: string } | { type: "ref/prompt"; name: string };
    argument: { name: string; value: string };
  }): Promise<{ completion: { values: string[] } }>;
}

type Opener = (way: { command: string; args: string[] } | URL) => Promise<AnyClient>;

/** A client of the split packages, at home in every revision. */
function split(mode: VersionNegotiationMode): Opener {
  return async (way) => {
    const client = new Client(NAME, { versionNegotiation: { mode } });
    await client.connect(
      way instanceof URL
        ? new StreamableHTTPClientTransport(way)
        : new StdioClientTransport({ ...way, stderr: "ignore" }),
    );
    return client;
  };
}

/** The client of the SDK in one package, which opens every session with a handshake. */
const whole: Opener = async (way) => {
  const client = new WholeClient(NAME);
  const transport = way instanceof URL ? new WholeHttp(way) : new WholeStdio({ ...way, stderr: "ignore" });
  // Its own transports declare their optional fields more loosely than its interface does.
  await client.connect(transport as WholeTransport);
  return client as AnyClient;
};

const CLIENTS: readonly (readonly [string, Opener])[] = [
  ["sdk", whole],
  ["client, handshake", split("legacy")],
  ["client, what the server speaks", split("auto")],
  ["client, 2026-07-28", split({ pin: "2026-07-28" })],
];

/** Each test with each client, over each transport. */
function everywhere(promise: string, run: (client: AnyClient) => Promise<void>): void {
  describe(promise, () => {
    for (const [name, open] of CLIENTS) {
      for (const transport of ["stdio", "HTTP"]) {
        test(`${name}, ${transport}`, async (t: TestContext) => {
          const store = new Store(t);
          const { command, args = [] } = store.command();
          const way =
            transport === "HTTP" ? new URL((await serve(t, store)).url) : { command, args: [...args] };
          const client = await open(way);
          try {
            await run(client);
          } finally {
            await client.close();
          }
        });
      }
    }
  });
}

function textOf(result: Called): string {
  return result.content.map((block) => block.text ?? "").join("");
}

async function call(client: AnyClient, name: string, fields: Fields): Promise<Called> {
  return (await client.callTool({ name, arguments: { ...fields } })) as Called;
}

/** Calls a tool that must succeed; returns what it says in structure. */
async function ask(client: AnyClient, tool: string, fields: Fields = {}): Promise<Fields> {
  const result = await call(client, tool, fields);
  assert.ok(!result.isError, textOf(result));
  assert.ok(result.structuredContent);
  if (tool !== "memory") {
    assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
  }
  return result.structuredContent;
}

/** Runs a memory command that must succeed. */
async function run(client: AnyClient, command: string, fields: Fields): Promise<string> {
  return String((await ask(client, "memory", { command, ...fields })).result);
}

everywhere("the client finds every tool described", async (client) => {
  assert.ok([undefined, "warm-mcp"].includes(client.getServerVersion()?.name));
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
  for (const tool of tools) {
    assert.ok(tool.description);
    assert.equal(tool.inputSchema.type, "object");
    assert.notEqual(tool.annotations?.readOnlyHint, undefined);
  }
});

everywhere("the client runs all six memory commands", async (client) => {
  const path = "/memories/plan.md";
  assert.match(await run(client, "create", { path, file_text: "one\ntwo\n" }), /plan\.md/);
  await run(client, "str_replace", { path, old_str: "two", new_str: "zwei" });
  await run(client, "insert", { path, insert_line: 0, insert_text: "zero" });
  const lines = (await run(client, "view", { path })).split("\n").slice(1);
  assert.deepEqual(
    lines.map((line) => line.split("\t")[1]),
    ["zero", "one", "zwei"],
  );
  await run(client, "rename", { old_path: path, new_path: "/memories/old/plan.md" });
  assert.match(await run(client, "view", { path: "/memories" }), /\/memories\/old\/plan\.md/);
  await run(client, "delete", { path: "/memories/old" });
  assert.doesNotMatch(await run(client, "view", { path: "/memories" }), /plan\.md/);
});

everywhere("the client calls every other tool", async (client) => {
  const text = "The boiler is serviced in May.";
  const memory = { key: "boiler", text, tags: ["home"], metadata: { floor: 2 } };
  assert.equal((await ask(client, "remember", memory)).created, true);
  await ask(client, "remember", { text: "A note without a name." });
  const got = await ask(client, "get", { key: "boiler" });
  assert.deepEqual([got.text, got.tags, got.metadata], [text, ["home"], { floor: 2 }]);
  const found = await ask(client, "recall", { query: "boiler serviced?", filter: { floor: { gte: 2 } } });
  assert.deepEqual(
    (found.results as Fields[]).map((hit) => hit.key),
    ["boiler"],
  );
  const listed = await ask(client, "list", { tag: "home", order: "recent" });
  assert.deepEqual(
    (listed.memories as Fields[]).map((entry) => entry.key),
    ["boiler"],
  );
  assert.match(JSON.stringify(await ask(client, "export", { format: "json" })), /boiler/);
  assert.equal((await ask(client, "stats")).memories, 2);
  assert.equal((await ask(client, "forget", { key: "boiler" })).forgotten, 1);
  assert.equal((await ask(client, "stats")).memories, 1);
});

everywhere("a refusal is a result with its code, and an unknown tool an error", async (client) => {
  const refused = await call(client, "get", { key: "nothing" });
  assert.equal(refused.isError, true);
  assert.equal(refused.structuredContent?.code, "not_found");
  assert.equal(refused.structuredContent?.message, textOf(refused));
  await assert.rejects(call(client, "recal", {}), /Unknown tool/);
  assert.equal((await ask(client, "stats")).memories, 0);
});

everywhere("the client reads memories and counts as resources", async (client) => {
  const read = async (uri: string) => {
    const [content] = (await client.readResource({ uri })).contents;
    assert.ok(content && "text" in content && typeof content.text === "string");
    return content.text;
  };
  await ask(client, "remember", { key: "boiler", text: "Serviced in May." });
  await run(client, "create", { path: "/memories/a b.md", file_text: "With a space in its name.\n" });
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.ok(resourceTemplates.some((template) => template.uriTemplate === TEMPLATE));
  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  assert.ok(uris.includes("warm://stats"));
  assert.match(await read("warm://memory/boiler"), /Serviced in May\./);
  const file = uris.find((uri) => uri.startsWith("warm://memory/") && uri.endsWith("b.md"));
  assert.ok(file);
  assert.match(await read(file), /With a space in its name\./);
  assert.equal((JSON.parse(await read("warm://stats")) as Fields).memories, 2);
  await assert.rejects(client.readResource({ uri: "warm://memory/nothing" }));
});

everywhere("the client gets every prompt", async (client) => {
  await ask(client, "remember", { key: "boiler", text: "The boiler is serviced in May." });
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name).sort(), [
    "recall-context",
    "review-memories",
    "save-memory",
  ]);
  for (const prompt of prompts) {
    assert.ok(prompt.description);
    const needed = (prompt.arguments ?? []).filter((argument) => argument.required);
    const given = Object.fromEntries(needed.map((argument) => [argument.name, "boiler"]));
    const got = await client.getPrompt({ name: prompt.name, arguments: given });
    assert.ok(got.messages.length > 0);
  }
  await assert.rejects(client.getPrompt({ name: "no-such-prompt" }));
});

everywhere("the client completes keys and tags", async (client) => {
  for (const key of ["boiler", "boots", "car"]) {
    await ask(client, "remember", { key, text: "x", tags: [`tag-${key}`] });
  }
  const ref = { type: "ref/resource", uri: TEMPLATE } as const;
  const completed = await client.complete({ ref, argument: { name: "key", value: "bo" } });
  assert.deepEqual(completed.completion.values.sort(), ["boiler", "boots"]);
  let asked = 0;
  for (const prompt of (await client.listPrompts()).prompts) {
    for (const { name } of prompt.arguments ?? []) {
      if (name === "tag" || name === "tags") {
        const about = { type: "ref/prompt", name: prompt.name } as const;
        const { completion } = await client.complete({ ref: about, argument: { name, value: "tag-b" } });
        assert.deepEqual(completion.values.sort(), ["tag-boiler", "tag-boots"]);
        asked++;
      }
    }
  }
  assert.ok(asked > 0, "no prompt takes a tag");
});
