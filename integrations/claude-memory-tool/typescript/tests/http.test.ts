/** The same tool over streamable HTTP, against a server made with the official SDK. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { describe, test } from "node:test";

import type { ServerAddress } from "warm-memory-tool";
import { WarmConnectionError, WarmMemoryTool, WarmToolError } from "warm-memory-tool";

import type { BridgeOptions } from "./http_bridge.js";
import { HttpBridge } from "./http_bridge.js";
import { EMPTY, numbered, snippet } from "./listing.js";
import type { Hands, Settings } from "./support.js";
import { handsOf, paths, refusal, Store } from "./support.js";

const TOKEN = "a token of enough characters";

/** Connects to a bridge on a store of its own. */
async function bridged(
  t: TestContext,
  options: BridgeOptions = {},
  { args = [], ...settings }: Settings = {},
  address: Partial<ServerAddress> = {},
): Promise<Hands & { bridge: HttpBridge }> {
  const store = new Store(t);
  const bridge = await HttpBridge.start(store.command({ args }), options);
  t.after(() => bridge[Symbol.asyncDispose]());
  const connection = { url: bridge.url, ...address };
  const memory = store.keep(await WarmMemoryTool.connect({ ...settings, connection }));
  return { ...handsOf(store, memory), bridge };
}

for (const json of [false, true]) {
  describe(json ? "answers in JSON" : "answers in a stream of events", () => {
    test("every command, and its errors word for word", async (t) => {
      const { create, memory, refused, run, view } = await bridged(t, { json });
      const path = "/memories/f";
      assert.equal(await view("/memories"), EMPTY);
      assert.equal(await create(path, "one\ntwo\n"), `File created successfully at: ${path}`);
      assert.equal(
        await run("str_replace", { path, old_str: "two", new_str: "日本語 🚀" }),
        snippet(["one", "日本語 🚀", ""]),
      );
      await run("insert", { path, insert_line: 0, insert_text: "zero" });
      assert.equal(await view(path), numbered(path, ["zero", "one", "日本語 🚀"]));
      assert.deepEqual(paths(await memory.recall("one")), [path]);
      const error = await refused("create", { path, file_text: "again" });
      assert.equal(error.message, `File ${path} already exists`);
      assert.equal(error.code, "already_exists");
      assert.equal(
        (await refused("view", { path: "/memories/../etc" })).message,
        "Path /memories/../etc would escape /memories directory",
      );
      await run("rename", { old_path: path, new_path: "/memories/g" });
      await run("delete", { path: "/memories/g" });
      assert.equal(await memory.clearAllMemory(), "All memory cleared");
    });

    test("concurrent edits of one file lose nothing", async (t) => {
      const { create, run, view } = await bridged(t, { json });
      await create("/memories/f", "");
      await Promise.all(
        Array.from({ length: 50 }, (_, number) =>
          run("insert", { path: "/memories/f", insert_line: 0, insert_text: `<${number}>` }),
        ),
      );
      const shown = await view("/memories/f");
      assert.ok(Array.from({ length: 50 }, (_, number) => `<${number}>`).every((it) => shown.includes(it)));
    });
  });
}

test("limits and namespace go with every call", async (t) => {
  const args = ["--namespace-arg"];
  const { create, refused, bridge } = await bridged(t, {}, { args, namespace: "one", maxFileBytes: 10 });
  await create("/memories/ten", "x".repeat(10));
  assert.equal(
    (await refused("create", { path: "/memories/over", file_text: "x".repeat(11) })).code,
    "too_large",
  );
  const other = await WarmMemoryTool.connect({ connection: { url: bridge.url }, namespace: "two" });
  assert.equal(await other.execute({ command: "view", path: "/memories" }), EMPTY);
  await other.close();
});

describe("the token", () => {
  test("is sent", async (t) => {
    const { view } = await bridged(t, { token: TOKEN }, {}, { token: TOKEN });
    assert.equal(await view("/memories"), EMPTY);
  });

  test("is by default the value of WARM_MCP_TOKEN", async (t) => {
    process.env.WARM_MCP_TOKEN = TOKEN;
    t.after(() => {
      delete process.env.WARM_MCP_TOKEN;
    });
    const { view } = await bridged(t, { token: TOKEN });
    assert.equal(await view("/memories"), EMPTY);
  });

  for (const token of [undefined, "another token that is wrong"]) {
    test(`${token ?? "that is missing"} is refused with what to do, and never repeated`, async (t) => {
      const error = await refusal(bridged(t, { token: TOKEN }, {}, token === undefined ? {} : { token }));
      assert.ok(error instanceof WarmConnectionError);
      assert.match(error.message, /refused access \(HTTP 401\)\. Pass the token .*WARM_MCP_TOKEN/);
      assert.ok(!error.message.includes(token ?? TOKEN));
    });
  }
});

describe("a server that", () => {
  test("is not there is named with what to do", async () => {
    const error = await refusal(WarmMemoryTool.connect({ connection: { url: "http://127.0.0.1:1/mcp" } }));
    assert.ok(error instanceof WarmConnectionError);
    assert.equal(error.code, "store_unavailable");
    assert.match(error.message, /^The server at http:\/\/127\.0\.0\.1:1\/mcp could not be reached/);
    assert.match(error.message, /warm-mcp --transport http/);
  });

  test("is something else is named", async (t) => {
    const other = createServer((_, response) => response.writeHead(200).end("<html>"));
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    t.after(() => other.close());
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`;
    assert.ok(
      (await refusal(WarmMemoryTool.connect({ connection: { url } }))) instanceof WarmConnectionError,
    );
  });

  test("answers nothing is given up on", async (t) => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => {
      silent.listen(0, "127.0.0.1", resolve);
    });
    t.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`;
    const error = await refusal(WarmMemoryTool.connect({ connection: { url }, startTimeoutMs: 200 }));
    assert.match(error.message, /did not answer within 0\.2 s/);
  });

  test("stops is named by the next call, which is sent only once", async (t) => {
    const { bridge, create, refused } = await bridged(t);
    await create("/memories/f", "x");
    await bridge.stop();
    for (let tries = 0; tries < 2; tries++) {
      const error = await refused("create", { path: "/memories/g", file_text: "x" });
      assert.ok(error instanceof WarmConnectionError);
      assert.match(error.message, /could not be reached .*Check that it runs there/);
    }
    assert.equal(bridge.calls, 1);
  });

  test("was restarted says that the session is unknown", async (t) => {
    const { bridge, refused } = await bridged(t);
    bridge.forget();
    assert.match((await refused("view", { path: "/memories" })).message, /does not know this session/);
  });

  test("fails during a write is not sent it again", async (t) => {
    const { bridge, create, refused, view } = await bridged(t);
    let posts = 0;
    bridge.intercept = (request, response) => {
      posts += request.method === "POST" ? 1 : 0;
      response.writeHead(503).end();
      return true;
    };
    const error = await refused("create", { path: "/memories/f", file_text: "x" });
    assert.ok(error instanceof WarmConnectionError);
    assert.match(error.message, /answered with HTTP 503\. Whether it did what was asked is not known/);
    assert.equal(posts, 1);
    bridge.intercept = () => false;
    await create("/memories/f", "x");
    assert.equal(await view("/memories/f"), numbered("/memories/f", ["x"]));
  });

  test("never answers a write is given up on after a minute", async (t) => {
    const { bridge, refused, view } = await bridged(t);
    const arrived = new Promise<void>((resolve) => {
      bridge.intercept = (request) => {
        if (request.method === "POST") {
          resolve();
        }
        return true;
      };
    });
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const write = refused("create", { path: "/memories/f", file_text: "x" });
    await arrived;
    t.mock.timers.tick(60_000);
    const error = await write;
    t.mock.timers.reset();
    assert.ok(error instanceof WarmConnectionError);
    assert.match(error.message, /did not answer within 60 s\. Whether it did what was asked is not known/);
    bridge.intercept = () => false;
    assert.equal(await view("/memories"), EMPTY);
  });

  test("cuts the connection during a write is not sent it again", async (t) => {
    const { bridge, refused } = await bridged(t);
    let posts = 0;
    bridge.intercept = (request) => {
      posts += request.method === "POST" ? 1 : 0;
      request.socket.destroy();
      return true;
    };
    const error = await refused("create", { path: "/memories/f", file_text: "x" });
    assert.ok(error instanceof WarmConnectionError);
    assert.equal(posts, 1);
  });
});

test("close ends the session, and later calls say that the tool is closed", async (t) => {
  const { bridge, memory, view } = await bridged(t);
  await view("/memories");
  assert.equal(bridge.sessions, 1);
  await memory.close();
  assert.equal(bridge.sessions, 0);
  const error = await refusal(view("/memories"));
  assert.ok(error instanceof WarmToolError);
  assert.match(error.message, /This memory tool is closed/);
});
