/** Where a server is: how to get at it, and what to say when that fails. */

import { setTimeout as sleep } from "node:timers/promises";

import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import {
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { serverEnvironment } from "./environment.js";
import { WarmConnectionError } from "./errors.js";

/** A server that this process starts. */
export interface ServerCommand {
  /** The server's name on the search path, or its full path. */
  readonly command: string;
  /** Its arguments, such as `["--data-dir", "/path/to/store"]`. */
  readonly args?: readonly string[];
  /**
   * Environment variables for it, on top of those that it gets anyway: home, path, locale and all that
   * start with `WARM_` or `XDG_`.
   */
  readonly env?: Readonly<Record<string, string>>;
}

/** A server that runs already, reached over streamable HTTP. */
export interface ServerAddress {
  /** Where it listens, such as `http://127.0.0.1:8765/mcp`. */
  readonly url: string | URL;
  /** The bearer token that it asks for; by default the value of `WARM_MCP_TOKEN`. */
  readonly token?: string;
}

/** The seam between a connection and the way to its server. */
export interface Endpoint {
  readonly transport: Transport;
  /** Milliseconds after which a call is given up on. */
  readonly callTimeoutMs: number;
  /** Why there was no handshake, and what to do. */
  noHandshake(error: unknown, startTimeoutMs: number): WarmConnectionError;
  /** Why a call had no answer, and what to do. */
  lost(error: unknown): WarmConnectionError;
  /** Says goodbye before the transport is closed. */
  leave(): Promise<void>;
}

/** Returns the way to a server. */
export function endpointOf(connection: ServerCommand | ServerAddress): Endpoint {
  const hasCommand = "command" in connection && connection.command !== undefined;
  const hasUrl = "url" in connection && connection.url !== undefined;
  if (hasCommand === hasUrl) {
    throw new TypeError("`connection` takes either a `command` that starts a server or the `url` of one");
  }
  return hasCommand
    ? new CommandEndpoint(connection as ServerCommand)
    : new AddressEndpoint(connection as ServerAddress);
}

// Longest delay of a timer. A server that is alive answers; one that dies ends the call.
const FOREVER_MS = 2 ** 31 - 1;
const HTTP_CALL_MS = 60_000;
const GOODBYE_MS = 2_000;
// A reply is bounded by the server's limits, which its owner may raise.
const LARGEST_REPLY_BYTES = 256 * 1024 * 1024;
const LAST_WORDS_BYTES = 4096;

/** Sends one message after the other: a pipe that is full need not have every message wait at it. */
class QueueingStdio extends StdioClientTransport {
  #last: Promise<unknown> = Promise.resolve();

  override send(message: JSONRPCMessage): Promise<void> {
    const sent = this.#last.then(() => super.send(message));
    this.#last = sent.catch(() => undefined);
    return sent;
  }

  override async close(): Promise<void> {
    if (this.pid !== null) {
      await withinMoments(this.#last);
    }
    await super.close();
  }
}

class CommandEndpoint implements Endpoint {
  readonly callTimeoutMs = FOREVER_MS;
  readonly transport: QueueingStdio;
  readonly #line: string;
  readonly #command: string;
  #tail = Buffer.alloc(0);

  constructor({ command, args = [], env = {} }: ServerCommand) {
    this.#command = command;
    this.#line = [command, ...args].map(quoted).join(" ");
    this.transport = new QueueingStdio({
      command,
      args: [...args],
      env: serverEnvironment(env, args),
      stderr: "pipe",
      maxBufferSize: LARGEST_REPLY_BYTES,
    });
    this.transport.stderr?.on("data", (chunk: Buffer) => {
      this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-LAST_WORDS_BYTES);
      process.stderr.write(chunk);
    });
  }

  noHandshake(error: unknown, startTimeoutMs: number): WarmConnectionError {
    if (isSystemError(error) && error.code === "ENOENT") {
      return new WarmConnectionError(
        `The server could not be started: there is no command \`${this.#command}\`. ` +
          "Install warm-mcp, or pass its full path as `command`.",
      );
    }
    if (isSystemError(error)) {
      return new WarmConnectionError(`The server \`${this.#command}\` could not be started: ${said(error)}.`);
    }
    const [what, todo] = isTimeout(error)
      ? [
          `did not answer within ${startTimeoutMs / 1000} s`,
          "Check that this command starts an MCP server on its standard input and output.",
        ]
      : isClosed(error)
        ? ["stopped before it was ready", "Run `warm-mcp doctor` with the same options to see what it needs."]
        : [
            `refused the handshake (${said(error)})`,
            "Check that this command starts a warm-mcp of a current version.",
          ];
    return new WarmConnectionError(`The server \`${this.#line}\` ${what}. ${todo}${this.#lastWords()}`);
  }

  lost(): WarmConnectionError {
    return new WarmConnectionError(
      `The server \`${this.#line}\` has stopped. Connect again to start a new one; every change that it had ` +
        `answered is in the store.${this.#lastWords()}`,
    );
  }

  async leave(): Promise<void> {}

  #lastWords(): string {
    const text = this.#tail.toString("utf8");
    const whole = this.#tail.length < LAST_WORDS_BYTES ? text : text.slice(text.indexOf("\n") + 1);
    return whole.trim() === "" ? "" : `\nIts last words were:\n${whole.trim()}`;
  }
}

class AddressEndpoint implements Endpoint {
  readonly callTimeoutMs = HTTP_CALL_MS;
  readonly transport: StreamableHTTPClientTransport;
  readonly #url: URL;

  constructor({ url, token = process.env.WARM_MCP_TOKEN }: ServerAddress) {
    this.#url = new URL(url);
    if (this.#url.username !== "" || this.#url.password !== "") {
      throw new TypeError("`url` must hold no user name or password; pass the server's token as `token`");
    }
    this.transport = new StreamableHTTPClientTransport(this.#url, {
      requestInit: token ? { headers: { authorization: `Bearer ${token}` } } : {},
    });
  }

  noHandshake(error: unknown, startTimeoutMs: number): WarmConnectionError {
    return isTimeout(error)
      ? new WarmConnectionError(
          `The server at ${this.#where} did not answer within ${startTimeoutMs / 1000} s. ` +
            "Check that this is the address of a warm-mcp.",
        )
      : this.lost(error);
  }

  lost(error: unknown): WarmConnectionError {
    return new WarmConnectionError(`The server at ${this.#where} ${this.#reason(error)}`);
  }

  async leave(): Promise<void> {
    // A server that is gone has nothing to end, and one that hangs is not waited for.
    await withinMoments(this.transport.terminateSession().catch(() => undefined));
  }

  get #where(): string {
    return `${this.#url.origin}${this.#url.pathname}`;
  }

  #reason(error: unknown): string {
    const unknown = "Whether it did what was asked is not known.";
    if (isTimeout(error)) {
      return `did not answer within ${this.callTimeoutMs / 1000} s. ${unknown} View the memory, then go on.`;
    }
    if (error instanceof SdkHttpError) {
      switch (error.status) {
        case 401:
          return (
            "refused access (HTTP 401). Pass the token that it was started with as `token`, or set " +
            "WARM_MCP_TOKEN."
          );
        case 403:
          return (
            "refused access (HTTP 403). It answers to the hosts that it knows alone: start it with " +
            "--allow-host and the host of this address."
          );
        case 404:
          return "does not know this session, or has nothing at this path. Check the `url` and connect again.";
        default:
          return `answered with HTTP ${error.status}. ${unknown} View the memory, then go on.`;
      }
    }
    if (isClosed(error)) {
      return `closed the connection. ${unknown} Connect again and view the memory.`;
    }
    return (
      `could not be reached (${said(error)}). Check that it runs there: ` +
      "`warm-mcp --transport http` prints its address. Every change that it had answered is in the store."
    );
  }
}

/** Waits for something that a server which hangs may never let happen. */
async function withinMoments(event: Promise<unknown>): Promise<void> {
  await Promise.race([event, sleep(GOODBYE_MS, undefined, { ref: false })]);
}

function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

function isClosed(error: unknown): boolean {
  const codes: readonly string[] = [SdkErrorCode.ConnectionClosed, SdkErrorCode.NotConnected];
  return error instanceof SdkError && codes.includes(error.code);
}

/** Whether the operating system said it; other errors have codes of their own. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^E[A-Z]+$/.test(code);
}

/** What an error says, and what lies behind it: `fetch failed` alone helps nobody. */
function said(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const cause = isSystemError(error.cause) ? error.cause.code : undefined;
  return cause ? `${error.message}: ${cause}` : error.message;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
