/** The memory tool. */

import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type {
  BetaMemoryTool20250818,
  BetaMemoryTool20250818Command,
  BetaMemoryTool20250818CreateCommand,
  BetaMemoryTool20250818DeleteCommand,
  BetaMemoryTool20250818InsertCommand,
  BetaMemoryTool20250818RenameCommand,
  BetaMemoryTool20250818StrReplaceCommand,
  BetaMemoryTool20250818ViewCommand,
} from "@anthropic-ai/sdk/resources/beta";

import { checkedInput, commandArguments, withoutMissing } from "./command.js";
import { Connection } from "./connection.js";
import type { ServerAddress, ServerCommand } from "./endpoint.js";
import { endpointOf } from "./endpoint.js";
import { WarmToolError } from "./errors.js";
import type { RecallResults } from "./recall.js";
import { parseRecall, RECALL_TOOL_DESCRIPTION, RECALL_TOOL_NAME, recallText } from "./recall.js";

const ROOT = "/memories";
const START_TIMEOUT_MS = 60_000;

/** How to connect, and what goes with every call. */
export interface ConnectOptions {
  /** A server to start, or the address of one that runs; by default `{ command: "warm-mcp" }`. */
  readonly connection?: ServerCommand | ServerAddress;
  /** The store to use, on a server started with `--namespace-arg`. */
  readonly namespace?: string;
  /** Largest file, in bytes; it can only lower the server's limit. */
  readonly maxFileBytes?: number;
  /** Longest `view`, in characters; it can only lower the server's limit. */
  readonly maxViewChars?: number;
  /** Milliseconds until the server must have answered; a large store may have an index to rebuild. */
  readonly startTimeoutMs?: number;
}

/**
 * Anthropic's memory tool on a WARM store.
 *
 * Get one from `connect`, and close it: until then the connection keeps the program running. Any number
 * of commands may be under way at once. Every command throws a `WarmToolError` when the server refuses it.
 */
export class WarmMemoryTool implements MemoryToolHandlers, AsyncDisposable {
  readonly #connection: Connection;
  readonly #scope: Readonly<Record<string, unknown>>;
  readonly #limits: Readonly<Record<string, unknown>>;

  private constructor(connection: Connection, options: ConnectOptions) {
    this.#connection = connection;
    this.#scope = withoutMissing({ namespace: options.namespace });
    this.#limits = withoutMissing({
      max_file_bytes: options.maxFileBytes,
      max_view_chars: options.maxViewChars,
    });
  }

  /**
   * Connects to a `warm-mcp` server.
   *
   * @throws {WarmConnectionError} It could not be started or reached; the message says what to do, and
   * quotes what a server that was started wrote last.
   */
  static async connect(options: ConnectOptions = {}): Promise<WarmMemoryTool> {
    const endpoint = endpointOf(options.connection ?? { command: "warm-mcp" });
    const connection = await Connection.open(endpoint, options.startTimeoutMs ?? START_TIMEOUT_MS);
    return new WarmMemoryTool(connection, options);
  }

  /** Runs the command in `input`, as the model sent it, and returns the text of the tool result. */
  async execute(input: unknown): Promise<string> {
    return this.#run(checkedInput(input));
  }

  /**
   * Returns the memory tool, to pass to the SDK's tool runner.
   *
   * @param extra Goes into the tool's definition, such as `cache_control`.
   */
  asTool(
    extra?: Omit<BetaMemoryTool20250818, "type" | "name">,
  ): BetaRunnableTool<BetaMemoryTool20250818Command> {
    // The SDK calls whatever member of the handlers the model names; the check lets it name commands only.
    return { ...betaMemoryTool(this, extra), parse: checkedInput };
  }

  /** Returns the companion tool `memory_recall`, to pass to the tool runner beside the memory tool. */
  recallTool(): BetaRunnableTool<{ query: string; k?: number }> {
    return betaTool({
      name: RECALL_TOOL_NAME,
      description: RECALL_TOOL_DESCRIPTION,
      inputSchema: {
        type: "object",
        properties: {
          query: { type: "string", description: "What to look for, in plain language." },
          k: { type: "integer", description: "How many files to return at most.", default: 5 },
        },
        required: ["query"],
      } as const,
      run: async ({ query, k }) => recallText(query, await this.recall(query, k)),
    }) as BetaRunnableTool<{ query: string; k?: number }>;
  }

  /** Returns the memory files most relevant to `query`, best first, `k` at most (5 if it is not given). */
  async recall(query: string, k?: number): Promise<RecallResults> {
    const { structured } = await this.#connection.call("recall", {
      ...withoutMissing({ query, k }),
      under: ROOT,
      ...this.#scope,
    });
    try {
      return parseRecall(structured);
    } catch (error) {
      throw new WarmToolError(`The server's answer to \`recall\` has the wrong shape: ${String(error)}`);
    }
  }

  /** Shows a file with line numbers, or a directory two levels deep. */
  async view(command: BetaMemoryTool20250818ViewCommand): Promise<string> {
    return this.#run(command);
  }

  /** Makes a new file; an existing one is never overwritten. */
  async create(command: BetaMemoryTool20250818CreateCommand): Promise<string> {
    return this.#run(command);
  }

  /** Replaces the one occurrence of a text in a file. */
  async str_replace(command: BetaMemoryTool20250818StrReplaceCommand): Promise<string> {
    return this.#run(command);
  }

  /** Puts text after a line of a file. */
  async insert(command: BetaMemoryTool20250818InsertCommand): Promise<string> {
    return this.#run(command);
  }

  /** Removes a file or a whole directory. */
  async delete(command: BetaMemoryTool20250818DeleteCommand): Promise<string> {
    return this.#run(command);
  }

  /** Gives a file or directory another path. */
  async rename(command: BetaMemoryTool20250818RenameCommand): Promise<string> {
    return this.#run(command);
  }

  /** Forgets every file under `/memories`, in one transaction; other memories of the store stay. */
  async clearAllMemory(): Promise<string> {
    await this.#connection.call("forget", { prefix: `${ROOT}/`, confirm: true, ...this.#scope });
    return "All memory cleared";
  }

  /**
   * Ends the connection, and with it a server that was started for it. Calls under way are answered or
   * fail; later ones throw a `WarmConnectionError`. Closing twice is fine.
   */
  async close(): Promise<void> {
    await this.#connection.close();
  }

  /** The same as `close`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(command: BetaMemoryTool20250818Command): Promise<string> {
    const args = { ...commandArguments(command), ...this.#limits, ...this.#scope };
    return (await this.#connection.call("memory", args)).text;
  }
}
