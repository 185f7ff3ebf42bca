/** The same tool against a real `warm-mcp --transport http`. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { WarmConnectionError, WarmMemoryTool } from "warm-memory-tool";

import { EMPTY, numbered } from "./listing.js";
import { serve } from "./server.js";
import { handsOf, paths, refusal, Store } from "./support.js";

const TOKEN = "a-token-of-enough-characters";

test("every command, recall, and errors word for word", async (t) => {
  const store = new Store(t);
  const { url } = await serve(t, store);
  const memory = store.keep(await WarmMemoryTool.connect({ connection: { url } }));
  const { create, run, refused, view } = handsOf(store, memory);
  const path = "/memories/f";
  assert.equal(await view("/memories"), EMPTY);
  assert.equal(await create(path, "one\n日本語 🚀\n"), `File created successfully at: ${path}`);
  assert.equal(await view(path), numbered(path, ["one", "日本語 🚀"]));
  assert.equal((await refused("create", { path, file_text: "x" })).message, `File ${path} already exists`);
  assert.deepEqual(paths(await memory.recall("one")), [path]);
  await run("rename", { old_path: path, new_path: "/memories/g" });
  await run("delete", { path: "/memories/g" });
  assert.equal(await memory.clearAllMemory(), "All memory cleared");
});

test("several tools, over HTTP and on stdin, share one store and lose nothing", async (t) => {
  const store = new Store(t);
  const { url } = await serve(t, store);
  const tools = [
    store.keep(await WarmMemoryTool.connect({ connection: { url } })),
    store.keep(await WarmMemoryTool.connect({ connection: { url } })),
    await store.connect(),
  ];
  const first = tools[0] as WarmMemoryTool;
  await first.execute({ command: "create", path: "/memories/f", file_text: "" });
  await Promise.all(
    Array.from({ length: 60 }, (_, number) =>
      (tools[number % tools.length] as WarmMemoryTool).execute({
        command: "insert",
        path: "/memories/f",
        insert_line: 0,
        insert_text: `<${number}>`,
      }),
    ),
  );
  const shown = await first.execute({ command: "view", path: "/memories/f" });
  assert.ok(Array.from({ length: 60 }, (_, number) => `<${number}>`).every((it) => shown.includes(it)));
});

test("the token is demanded", async (t) => {
  const store = new Store(t);
  const { url } = await serve(t, store, { env: { WARM_MCP_TOKEN: TOKEN } });
  const error = await refusal(WarmMemoryTool.connect({ connection: { url } }));
  assert.ok(error instanceof WarmConnectionError);
  assert.equal(
    error.message,
    `The server at ${url} refused access (HTTP 401). Pass the token that it was started with as \`token\`, or ` +
      "set WARM_MCP_TOKEN.",
  );
  const memory = store.keep(await WarmMemoryTool.connect({ connection: { url, token: TOKEN } }));
  assert.equal(await memory.execute({ command: "view", path: "/memories" }), EMPTY);
});

test("a server that is gone is named at the next call", async (t) => {
  const store = new Store(t);
  const { url, child, ended } = await serve(t, store);
  const memory = store.keep(await WarmMemoryTool.connect({ connection: { url } }));
  await memory.execute({ command: "create", path: "/memories/f", file_text: "x" });
  child.kill("SIGKILL");
  await ended;
  const error = await refusal(memory.execute({ command: "view", path: "/memories" }));
  assert.ok(error instanceof WarmConnectionError, error.message);
});

test("a restart keeps every file", async (t) => {
  const store = new Store(t);
  const first = await serve(t, store);
  const before = store.keep(await WarmMemoryTool.connect({ connection: { url: first.url } }));
  await before.execute({ command: "create", path: "/memories/a/f", file_text: "kept" });
  await before.close();
  first.child.kill();
  await first.ended;
  const { url } = await serve(t, store);
  const after = store.keep(await WarmMemoryTool.connect({ connection: { url } }));
  assert.equal(
    await after.execute({ command: "view", path: "/memories/a/f" }),
    numbered("/memories/a/f", ["kept"]),
  );
  assert.deepEqual(paths(await after.recall("kept")), ["/memories/a/f"]);
});

test("a namespace is a store of its own", async (t) => {
  const store = new Store(t);
  const { url } = await serve(t, store, { args: ["--namespace-arg"] });
  const connect = async (namespace: string) =>
    store.keep(await WarmMemoryTool.connect({ connection: { url }, namespace }));
  const [one, other] = [await connect("one"), await connect("other")];
  await one.execute({ command: "create", path: "/memories/f", file_text: "of one" });
  for (const command of ["view", "delete"]) {
    const error = await refusal(other.execute({ command, path: "/memories/f" }));
    assert.equal(error.code, "not_found");
  }
  assert.deepEqual(paths(await other.recall("one")), []);
  assert.equal(
    await one.execute({ command: "view", path: "/memories/f" }),
    numbered("/memories/f", ["of one"]),
  );
});

test("a server that does not know the host says how it comes to", async (t) => {
  const store = new Store(t);
  const { url } = await serve(t, store);
  // It leads to this machine, and is no name of the server's.
  const foreign = url.replace("127.0.0.1", "0.0.0.0");
  const error = await refusal(WarmMemoryTool.connect({ connection: { url: foreign } }));
  assert.match(error.message, /refused access \(HTTP 403\)\..*--allow-host/);
});
