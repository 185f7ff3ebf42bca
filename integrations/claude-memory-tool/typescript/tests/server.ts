/** A real `warm-mcp --transport http`. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

import type { Settings, Store } from "./support.js";

/** Starts a server on a store; ends it with the test. */
export async function serve(t: TestContext, store: Store, settings: Settings = {}) {
  const { command, args = [], env = {} } = store.command(settings);
  const child = spawn(command, ["--transport", "http", "--bind", "127.0.0.1:0", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "exit");
  t.after(async () => {
    child.kill();
    await ended;
  });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const url = /^warm-mcp listening on (\S+)$/.exec(line)?.[1];
  assert.ok(url, line);
  return { child, ended, url };
}
