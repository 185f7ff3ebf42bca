/** The package around the server: start, concurrency, ends, servers that die, environment, namespaces. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { WarmConnectionError, WarmMemoryTool, WarmToolError } from "warm-memory-tool";

import { EMPTY, listing, numbered } from "./listing.js";
import {
  BINARY,
  children,
  eventually,
  hands,
  handsOf,
  isRunning,
  paths,
  refusal,
  Store,
  withServer,
} from "./support.js";

const VIEW = { command: "view", path: "/memories" };
const CLOSED = "This memory tool is closed. Connect again to use the memory.";

describe("entry points", () => {
  test("the tool is the SDK's handlers", async (t) => {
    const { memory } = await hands(t);
    const handlers: MemoryToolHandlers = memory;
    const path = "/memories/f";
    assert.equal(
      await handlers.create({ command: "create", path, file_text: "x" }),
      "File created successfully at: /memories/f",
    );
    assert.equal(await handlers.view({ command: "view", path, view_range: [1, 1] }), numbered(path, ["x"]));
    await handlers.str_replace({ command: "str_replace", path, old_str: "x", new_str: "y" });
    await handlers.insert({ command: "insert", path, insert_line: 1, insert_text: "z" });
    await handlers.rename({ command: "rename", old_path: path, new_path: "/memories/g" });
    assert.equal(
      await memory.execute({ command: "view", path: "/memories/g" }),
      numbered("/memories/g", ["y", "z"]),
    );
    await handlers.delete({ command: "delete", path: "/memories/g" });
    assert.equal(await memory.execute(VIEW), EMPTY);
  });

  test("a refusal is the SDK's tool error with the plain message", async (t) => {
    const { refused } = await hands(t);
    const error = await refused("view", { path: "/etc" });
    assert.ok(error instanceof ToolError);
    assert.ok(error instanceof WarmToolError);
    assert.ok(!(error instanceof WarmConnectionError));
    assert.equal(error.content, "Path must start with /memories, got: /etc");
    assert.equal(error.message, error.content);
    assert.deepEqual([error.name, error.code, error.details], ["WarmToolError", "invalid_argument", {}]);
  });

  test("execute refuses what is no command", async (t) => {
    const { memory } = await hands(t);
    for (const input of [
      undefined,
      null,
      "view",
      3,
      [],
      {},
      { command: ["view"] },
      { command: "toString" },
    ]) {
      assert.equal((await refusal(memory.execute(input))).code, "invalid_argument");
    }
  });

  test("connect refuses a connection that is neither a command nor an address, is both, or is no plain address", async () => {
    for (const connection of [
      {},
      { command: BINARY, url: "http://127.0.0.1:1/mcp" },
      { url: "127.0.0.1" },
      { url: "http://me:secret@127.0.0.1:1/mcp" },
    ]) {
      await assert.rejects(WarmMemoryTool.connect({ connection: connection as never }), TypeError);
    }
  });

  test("await using closes the tool", async (t) => {
    const store = new Store(t);
    let kept: WarmMemoryTool;
    {
      await using memory = await WarmMemoryTool.connect({ connection: store.command() });
      kept = memory;
      assert.equal(await memory.execute(VIEW), EMPTY);
    }
    assert.equal((await refusal(kept.execute(VIEW))).message, CLOSED);
  });
});

describe("concurrency", () => {
  test("concurrent edits of one file lose nothing", async (t) => {
    const { create, run, view } = await hands(t);
    await create("/memories/f", "");
    const numbers = Array.from({ length: 100 }, (_, number) => number);
    await Promise.all(
      numbers.map((number) =>
        run("insert", { path: "/memories/f", insert_line: 0, insert_text: `line ${number}` }),
      ),
    );
    const shown = [...(await view("/memories/f")).matchAll(/line (\d+)/g)].map((match) => Number(match[1]));
    assert.deepEqual(
      shown.sort((one, other) => one - other),
      numbers,
    );
  });

  test("calls sent without waiting take effect in their order", async (t) => {
    const { create, run, view } = await hands(t);
    const path = "/memories/f";
    const sent = [create(path, "0")];
    for (let number = 0; number < 50; number++) {
      sent.push(run("str_replace", { path, old_str: String(number), new_str: String(number + 1) }));
    }
    await Promise.all(sent);
    assert.equal(await view(path), numbered(path, ["50"]));
  });

  test("only one of many creates of a path wins", async (t) => {
    const { create, view } = await hands(t);
    const ends = await Promise.allSettled(
      Array.from({ length: 32 }, (_, number) => create("/memories/f", String(number))),
    );
    const won = ends.findIndex((end) => end.status === "fulfilled");
    for (const [number, end] of ends.entries()) {
      if (number !== won) {
        assert.equal(end.status === "rejected" && end.reason.code, "already_exists");
      }
    }
    assert.equal(await view("/memories/f"), numbered("/memories/f", [String(won)]));
  });

  test("many large calls at once bring no warning", async (t) => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    t.after(() => process.off("warning", note));
    const { create, memory } = await hands(t);
    const text = "x".repeat(32 * 1024);
    await Promise.all(Array.from({ length: 60 }, (_, number) => create(`/memories/${number}`, text)));
    await memory.close();
    assert.deepEqual(warnings, []);
  });

  test("two clients on one store see each other's writes at once", async (t) => {
    const store = new Store(t);
    const [one, other] = await Promise.all([store.connect(), store.connect()]);
    const [left, right] = [handsOf(store, one), handsOf(store, other)];
    await left.create("/memories/f", "from one\n");
    await right.run("insert", { path: "/memories/f", insert_line: 1, insert_text: "from the other" });
    assert.equal(await left.view("/memories/f"), numbered("/memories/f", ["from one", "from the other"]));
    assert.deepEqual(paths(await right.memory.recall("one")), ["/memories/f"]);
    const numbers = Array.from({ length: 40 }, (_, number) => number);
    await Promise.all(
      numbers.map((number) =>
        (number % 2 ? left : right).run("insert", {
          path: "/memories/f",
          insert_line: 0,
          insert_text: `<${number}>`,
        }),
      ),
    );
    const shown = await right.view("/memories/f");
    assert.ok(numbers.every((number) => shown.includes(`<${number}>`)));
  });

  test("a second client goes on when the first, which held the store, is killed", async (t) => {
    const store = new Store(t);
    const first = await withServer(() => store.connect());
    const second = handsOf(store, await store.connect());
    await first.memory.execute({ command: "create", path: "/memories/f", file_text: "kept" });
    assert.equal(await second.view("/memories/f"), numbered("/memories/f", ["kept"]));
    process.kill(first.pid, "SIGKILL");
    await second.create("/memories/g", "after");
    assert.equal(await second.view("/memories/f"), numbered("/memories/f", ["kept"]));
  });
});

describe("servers that do not start", () => {
  test("a missing command says what to do", async () => {
    const error = await refusal(WarmMemoryTool.connect({ connection: { command: "no-such-warm-mcp" } }));
    assert.ok(error instanceof WarmConnectionError);
    assert.equal(error.code, "store_unavailable");
    assert.match(error.message, /no command `no-such-warm-mcp`.*full path/);
  });

  test("a command that may not be run is named", async (t) => {
    const { folder } = new Store(t);
    const error = await refusal(WarmMemoryTool.connect({ connection: { command: folder } }));
    assert.match(error.message, /could not be started: .*EACCES/);
  });

  test("a server that refuses to start is quoted", async () => {
    const error = await refusal(
      WarmMemoryTool.connect({ connection: { command: BINARY, args: ["--no-such-option"] } }),
    );
    assert.ok(error instanceof WarmConnectionError);
    const [said, words] = error.message.split("Its last words were:\n");
    assert.match(said ?? "", /stopped before it was ready\. Run `warm-mcp doctor`/);
    assert.match(words ?? "", /--no-such-option/);
  });

  test("a command that is no server is given up on and ended", async () => {
    const before = children();
    const error = await refusal(
      WarmMemoryTool.connect({
        connection: { command: "sleep", args: ["3600"] },
        startTimeoutMs: 300,
      }),
    );
    assert.match(error.message, /did not answer within 0\.3 s/);
    assert.ok(await eventually(() => [...children()].every((child) => before.has(child))));
  });

  test("a server that refuses the handshake is quoted", async () => {
    const refuses = '{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"too old"}}';
    const args = ["-c", `read line; echo '${refuses}'; read line`];
    const error = await refusal(WarmMemoryTool.connect({ connection: { command: "sh", args } }));
    assert.match(error.message, /refused the handshake \(.*too old\)\. Check .* current version/);
  });

  test("a command that answers something else is given up on", async () => {
    const error = await refusal(
      WarmMemoryTool.connect({ connection: { command: "sh", args: ["-c", "echo hello; echo '[]'"] } }),
    );
    assert.match(error.message, /stopped before it was ready/);
  });
});

describe("ends", () => {
  test("a server that dies gives an error that says what to do, and what it answered is kept", async (t) => {
    const store = new Store(t);
    const { memory, pid } = await withServer(() => store.connect());
    await memory.execute({ command: "create", path: "/memories/f", file_text: "x" });
    process.kill(pid, "SIGKILL");
    assert.ok(await eventually(() => !isRunning(pid)));
    for (let tries = 0; tries < 3; tries++) {
      const error = await refusal(memory.execute(VIEW));
      assert.ok(error instanceof WarmConnectionError && error instanceof ToolError);
      assert.match(error.message, /has stopped\. Connect again to start a new one/);
      assert.equal(error.code, "store_unavailable");
    }
    assert.equal((await refusal(memory.recall("x"))).code, "store_unavailable");
    await memory.close();
    const again = await store.connect();
    assert.equal(
      await again.execute({ command: "view", path: "/memories/f" }),
      numbered("/memories/f", ["x"]),
    );
  });

  test("calls under way when the server is killed all come to an end, and none is sent twice", async (t) => {
    const store = new Store(t);
    const { memory, pid } = await withServer(() => store.connect());
    const calls = Array.from({ length: 50 }, (_, number) =>
      memory.execute({ command: "create", path: `/memories/${number}`, file_text: "x" }),
    );
    await calls[0];
    process.kill(pid, "SIGKILL");
    const ends = await Promise.allSettled(calls);
    const again = handsOf(store, await store.connect());
    const shown = await again.view("/memories");
    for (const [number, end] of ends.entries()) {
      if (end.status === "fulfilled") {
        assert.ok(shown.includes(`\t/memories/${number}`), `the answered write ${number} is lost`);
      } else {
        assert.ok(end.reason instanceof WarmConnectionError);
      }
    }
  });

  test("close ends the server and may be repeated", async (t) => {
    const store = new Store(t);
    const { memory, pid } = await withServer(() => store.connect());
    await Promise.all([memory.close(), memory.close()]);
    assert.ok(await eventually(() => !isRunning(pid)));
    await memory.close();
    for (const call of [memory.execute(VIEW), memory.recall("x"), memory.clearAllMemory()]) {
      const error = await refusal(call);
      assert.ok(error instanceof WarmConnectionError);
      assert.equal(error.message, CLOSED);
    }
  });

  test("calls under way when the tool is closed are answered or say that it is closed", async (t) => {
    const store = new Store(t);
    const memory = await store.connect();
    const calls = Array.from({ length: 50 }, (_, number) =>
      memory.execute({ command: "create", path: `/memories/${number}`, file_text: "x" }),
    );
    const [ends] = await Promise.all([Promise.allSettled(calls), memory.close()]);
    const shown = await (await store.connect()).execute(VIEW);
    for (const [number, end] of ends.entries()) {
      if (end.status === "fulfilled") {
        assert.ok(shown.includes(`\t/memories/${number}`));
      } else {
        assert.equal(end.reason.message, CLOSED);
      }
    }
    assert.equal(ends[0]?.status, "fulfilled");
  });

  for (const [name, end] of [
    ["exits", "process.exit(0);"],
    ["throws", "process.exitCode = 0; queueMicrotask(() => { throw new Error('on purpose'); });"],
    ["is killed", "process.kill(process.pid, 'SIGKILL');"],
  ] as const) {
    test(`a program that closes nothing and ${name} leaves no server and loses nothing`, async (t) => {
      const store = new Store(t);
      const program = `
        import { WarmMemoryTool } from "warm-memory-tool";
        const connection = { command: process.argv[1], args: process.argv.slice(2) };
        const memory = await WarmMemoryTool.connect({ connection });
        await memory.execute({ command: "create", path: "/memories/f", file_text: "x" });
        ${end}`;
      spawnSync(
        process.execPath,
        ["--input-type=module", "--eval", program, BINARY, "--data-dir", store.data],
        { cwd: fileURLToPath(new URL("../..", import.meta.url)), timeout: 60_000 },
      );
      const serves = (pid: string) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(store.data);
        } catch {
          return false;
        }
      };
      assert.ok(await eventually(() => !readdirSync("/proc").filter(Number).some(serves)));
      const memory = await store.connect();
      assert.equal(
        await memory.execute({ command: "view", path: "/memories/f" }),
        numbered("/memories/f", ["x"]),
      );
    });
  }
});

describe("what is kept", () => {
  test("a restart keeps every file", async (t) => {
    const store = new Store(t);
    const first = handsOf(store, await store.connect());
    const path = "/memories/a/kept.md";
    await first.create(path, "one\ntwo\n");
    await first.create("/memories/gone.md", "x");
    await first.run("str_replace", { path, old_str: "one", new_str: "1" });
    await first.run("delete", { path: "/memories/gone.md" });
    await first.memory.close();
    const second = handsOf(store, await store.connect());
    assert.equal(await second.view(path), numbered(path, ["1", "two"]));
    assert.equal(
      await second.view("/memories"),
      listing("/memories", [6, "/memories"], [6, "/memories/a/"], [6, path]),
    );
    assert.deepEqual(paths(await second.memory.recall("two")), [path]);
  });

  test("two stores know nothing of each other", async (t) => {
    const store = new Store(t);
    const one = await store.connect();
    const other = await store.connect({ at: join(store.folder, "other") });
    await one.execute({ command: "create", path: "/memories/f", file_text: "secret plan" });
    assert.equal(await other.execute(VIEW), EMPTY);
    assert.equal((await other.recall("secret plan")).length, 0);
  });

  test("no text or name is readable on disk and no one else may look", async (t) => {
    const store = new Store(t);
    const memory = await store.connect();
    const file_text = "plaintextword ".repeat(50);
    await memory.execute({ command: "create", path: "/memories/plainname.md", file_text });
    await memory.recall("plaintextword");
    await memory.close();
    const found = readdirSync(store.data, { recursive: true, withFileTypes: true });
    assert.ok(found.some((entry) => entry.isFile()));
    for (const entry of found) {
      const path = join(entry.parentPath, entry.name);
      assert.equal(statSync(path).mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, path);
      if (entry.isFile()) {
        const held = readFileSync(path);
        assert.ok(!held.includes("plaintextword") && !held.includes("plainname"), path);
      }
    }
  });

  test("a wrong identity is refused in the server's words, and the right one still opens", async (t) => {
    const store = new Store(t);
    const first = handsOf(store, await store.connect());
    await first.create("/memories/f", "x");
    await first.memory.close();
    const identity = join(store.data, "identity.txt");
    const kept = readFileSync(identity);
    writeFileSync(identity, kept.subarray(0, -20));
    const error = await refusal(store.connect());
    assert.match(error.message, /Its last words were:\n.*malformed/s);
    writeFileSync(identity, kept);
    const again = handsOf(store, await store.connect());
    assert.equal(await again.view("/memories/f"), numbered("/memories/f", ["x"]));
  });
});

describe("arguments and environment", () => {
  /** Sets variables of this process for the time of a test. */
  function withVariables(t: { after(restore: () => void): void }, variables: Record<string, string>) {
    Object.assign(process.env, variables);
    t.after(() => {
      for (const name of Object.keys(variables)) {
        delete process.env[name];
      }
    });
  }

  test("the server gets its own variables, and what is given goes on top", async (t) => {
    const store = new Store(t);
    withVariables(t, { WARM_MCP_DATA_DIR: join(store.folder, "by variable") });
    const one = store.keep(await WarmMemoryTool.connect({ connection: { command: BINARY } }));
    await one.execute({ command: "create", path: "/memories/f", file_text: "x" });
    assert.ok(existsSync(join(store.folder, "by variable", "identity.txt")));
    const env = { WARM_MCP_DATA_DIR: join(store.folder, "given") };
    const other = store.keep(await WarmMemoryTool.connect({ connection: { command: BINARY, env } }));
    assert.equal(await other.execute(VIEW), EMPTY);
    assert.ok(existsSync(join(store.folder, "given", "identity.txt")));
  });

  test("the default command is warm-mcp and the default store is in the user's data folder", async (t) => {
    const store = new Store(t);
    const bin = join(store.folder, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "warm-mcp"), `#!/bin/sh\nexec '${BINARY}' "$@"\n`, { mode: 0o755 });
    const path = process.env.PATH;
    t.after(() => {
      process.env.PATH = path;
    });
    process.env.PATH = `${bin}:${path}`;
    withVariables(t, { XDG_DATA_HOME: join(store.folder, "xdg") });
    const memory = store.keep(await WarmMemoryTool.connect());
    assert.equal(await memory.execute(VIEW), EMPTY);
    const made = readdirSync(join(store.folder, "xdg"), { recursive: true });
    assert.ok(made.some((name) => String(name).endsWith("identity.txt")));
  });

  test("the server never sees the keys of other services", async (t) => {
    withVariables(t, { ANTHROPIC_API_KEY: "sk-secret", WARM_MCP_LOG: "debug" });
    const connection = { command: "sh", args: ["-c", "env >&2; exit 1"], env: { MINE: "given" } };
    const { message } = await refusal(WarmMemoryTool.connect({ connection }));
    assert.ok(!message.includes("sk-secret"));
    assert.match(message, /^MINE=given$/m);
    assert.match(message, /^WARM_MCP_LOG=debug$/m);
  });

  test("arguments are passed as they are and quoted in errors", async () => {
    const args = ["-c", 'printf "<%s>" "$@" >&2', "sh", "a b", "", "it's", "$HOME"];
    const { message } = await refusal(WarmMemoryTool.connect({ connection: { command: "sh", args } }));
    assert.ok(message.endsWith("<a b><><it's><$HOME>"), message);
    assert.ok(message.includes(`sh 'a b' '' 'it'"'"'s' '$HOME'`), message);
  });

  test("a passphrase seals the store, and the variable that holds it reaches the server", async (t) => {
    const store = new Store(t);
    const args = ["--passphrase-env", "MEMORY_PASSPHRASE"];
    withVariables(t, { MEMORY_PASSPHRASE: "correct horse battery" });
    const first = handsOf(store, await store.connect({ args }));
    await first.create("/memories/f", "x");
    await first.memory.close();
    const error = await refusal(store.connect({ args, env: { MEMORY_PASSPHRASE: "wrong" } }));
    assert.match(error.message, /passphrase/i);
    const again = handsOf(store, await store.connect({ args: ["--passphrase-env=MEMORY_PASSPHRASE"] }));
    assert.equal(await again.view("/memories/f"), numbered("/memories/f", ["x"]));
  });
});

describe("namespaces", () => {
  test("a namespace is a store of its own", async (t) => {
    const store = new Store(t);
    const args = ["--namespace-arg"];
    const one = handsOf(store, await store.connect({ args, namespace: "one" }));
    const two = handsOf(store, await store.connect({ args, namespace: "two" }));
    await one.create("/memories/f", "a ferry");
    assert.deepEqual(paths(await one.memory.recall("ferry")), ["/memories/f"]);
    assert.equal(await two.view("/memories"), EMPTY);
    assert.equal((await two.memory.recall("ferry")).length, 0);
    for (const [command, fields] of [
      ["view", { path: "/memories/f" }],
      ["delete", { path: "/memories/f" }],
      ["rename", { old_path: "/memories/f", new_path: "/memories/g" }],
    ] as const) {
      assert.match((await two.refused(command, fields)).message, /does not exist/);
    }
    assert.equal(await two.memory.clearAllMemory(), "All memory cleared");
    assert.equal(await one.view("/memories/f"), numbered("/memories/f", ["a ferry"]));
  });

  test("a namespace is refused by a server without --namespace-arg", async (t) => {
    const { refused } = await hands(t, { namespace: "one" });
    const error = await refused("view", { path: "/memories" });
    assert.match(error.code, /^(invalid_argument|forbidden)$/);
    assert.match(error.message, /namespace/);
  });
});
