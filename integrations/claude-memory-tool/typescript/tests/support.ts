/** What every test needs: a real `warm-mcp` process with a store of its own. */

import assert from "node:assert/strict";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectOptions, RecallResults, ServerCommand } from "warm-memory-tool";
import { WarmMemoryTool, WarmToolError } from "warm-memory-tool";

import { serve } from "./server.js";

const VARIABLE = "WARM_MCP_BIN";
const REPOSITORY = resolve(import.meta.dirname, "../../../../..");

// The settings of whoever runs the tests stay away from the servers under test.
for (const name of Object.keys(process.env)) {
  if (/^(WARM_|ANTHROPIC_|RUST_LOG$|(https?|all)_proxy$)/i.test(name) && name !== VARIABLE) {
    delete process.env[name];
  }
}

export type Transport = "stdio" | "HTTP";

let transport: Transport = "stdio";

/** From now on, stores are reached this way where a test does not say another. */
export function reachOver(chosen: Transport): void {
  transport = chosen;
}

/** The server to test. */
export const BINARY = findBinary();

function findBinary(): string {
  const given = process.env[VARIABLE];
  if (given) {
    const path = resolve(given);
    accessSync(path, constants.X_OK);
    return path;
  }
  const built = ["release", "debug"]
    .map((profile) => join(REPOSITORY, "target", profile, "warm-mcp"))
    .filter((path) => existsSync(path))
    .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  if (built[0] === undefined) {
    throw new Error(`There is no warm-mcp to test. Build one, or set ${VARIABLE}=/path/to/warm-mcp`);
  }
  return built[0];
}

/** What a model sends. */
export type Input = Record<string, unknown>;

/** How a test connects: options of the package, and more arguments for the server. */
export interface Settings extends Omit<ConnectOptions, "connection"> {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly at?: string;
}

/** A store of a test's own; whatever was connected to it is closed when the test ends. */
export class Store {
  readonly folder = mkdtempSync(join(tmpdir(), "warm-ts-"));
  readonly data = join(this.folder, "data");
  readonly #open: WarmMemoryTool[] = [];
  readonly #test: TestContext;

  constructor(test: TestContext) {
    this.#test = test;
    test.after(async () => {
      await Promise.all(this.#open.map((memory) => memory.close()));
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** How to start a server on this store. */
  command({ args = [], env, at = this.data }: Settings = {}): ServerCommand {
    return { command: BINARY, args: ["--data-dir", at, ...args], ...(env && { env }) };
  }

  /** Connects a memory tool to a new server. */
  async connect(settings: Settings = {}): Promise<WarmMemoryTool> {
    const { args: _, env: __, at: ___, ...options } = settings;
    const connection =
      transport === "HTTP" ? { url: (await serve(this.#test, this, settings)).url } : this.command(settings);
    return this.keep(await WarmMemoryTool.connect({ ...options, connection }));
  }

  /** Closes a memory tool when the test ends. */
  keep(memory: WarmMemoryTool): WarmMemoryTool {
    this.#open.push(memory);
    return memory;
  }
}

/** Commands on one memory tool, in the form that tests are written in. */
export interface Hands {
  readonly store: Store;
  readonly memory: WarmMemoryTool;
  /** Runs a command, given as the model gives it. */
  run(command: string, fields?: Input): Promise<string>;
  /** Runs a command that must be refused, and returns the error. */
  refused(command: string, fields?: Input): Promise<WarmToolError>;
  create(path: string, text: string): Promise<string>;
  view(path: string, range?: readonly number[]): Promise<string>;
}

/** Connects to an empty store. */
export async function hands(test: TestContext, settings: Settings = {}): Promise<Hands> {
  const store = new Store(test);
  return handsOf(store, await store.connect(settings));
}

export function handsOf(store: Store, memory: WarmMemoryTool): Hands {
  const run = (command: string, fields: Input = {}) => memory.execute({ command, ...fields });
  return {
    store,
    memory,
    run,
    refused: (command, fields) => refusal(run(command, fields)),
    create: (path, text) => run("create", { path, file_text: text }),
    view: (path, range) => run("view", { path, ...(range && { view_range: range }) }),
  };
}

/** Returns the error of a promise that must be refused by the server. */
export async function refusal(promise: Promise<unknown>): Promise<WarmToolError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof WarmToolError, String(error));
    return error;
  }
  return assert.fail("it was not refused");
}

export function paths(results: RecallResults): string[] {
  return results.map((hit) => hit.path);
}

/** Waits until `done` holds, for at most twenty seconds; returns whether it does. */
export async function eventually(done: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 2000; tries++) {
    if (done()) {
      return true;
    }
    await sleep(10);
  }
  return false;
}

/** Returns the running child processes of this one. */
export function children(): Set<number> {
  const listed = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8");
  return new Set(listed.split(" ").filter(Boolean).map(Number).filter(isRunning));
}

export function isRunning(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !["Z", "X"].includes(status.slice(status.lastIndexOf(")") + 2, status.lastIndexOf(")") + 3));
  } catch {
    return false;
  }
}

/** Connects, and returns the process that this started. */
export async function withServer(
  connect: () => Promise<WarmMemoryTool>,
): Promise<{ memory: WarmMemoryTool; pid: number }> {
  const before = children();
  const memory = await connect();
  const [pid] = [...children()].filter((child) => !before.has(child));
  assert.ok(pid);
  return { memory, pid };
}
