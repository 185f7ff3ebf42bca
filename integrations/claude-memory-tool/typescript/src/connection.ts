/** One connection to one `warm-mcp` server. */

import { Client, ProtocolError, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";

import { isObject, refuseUnencodable } from "./command.js";
import type { Endpoint } from "./endpoint.js";
import { WarmConnectionError, WarmToolError } from "./errors.js";
import { NAME, VERSION } from "./version.js";

/** What a tool of the server answered. */
export interface Reply {
  /** Its text, exactly as the server sent it. */
  readonly text: string;
  readonly structured: Readonly<Record<string, unknown>>;
}

/** A session with a server. Any number of calls may be under way at once. */
export class Connection {
  readonly #endpoint: Endpoint;
  readonly #client = new Client({ name: NAME, version: VERSION });
  #lost = false;
  #closing: Promise<void> | undefined;

  private constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.#client.onclose = () => {
      this.#lost = true;
    };
  }

  /** Shakes hands with a server, which is started first if need be. */
  static async open(endpoint: Endpoint, startTimeoutMs: number): Promise<Connection> {
    const connection = new Connection(endpoint);
    try {
      await connection.#client.connect(endpoint.transport, { timeout: startTimeoutMs });
    } catch (error) {
      await connection.close();
      throw endpoint.noHandshake(error, startTimeoutMs);
    }
    return connection;
  }

  /**
   * Calls one tool of the server, once: a call that may have been a write is never repeated.
   *
   * @throws {WarmToolError} The server refused or failed; the message is its own.
   * @throws {WarmConnectionError} The server is gone, or this connection was closed.
   */
  async call(tool: string, args: Record<string, unknown>): Promise<Reply> {
    refuseUnencodable(args);
    if (this.#closing !== undefined) {
      throw closedError();
    }
    if (this.#lost) {
      throw this.#endpoint.lost(new SdkError(SdkErrorCode.ConnectionClosed, "Connection closed"));
    }
    // `Client.callTool` would fetch the list of tools to check each answer against its schema, and may
    // send a call twice.
    const request = { method: "tools/call", params: { name: tool, arguments: args } } as const;
    const result = await this.#client
      .request(request, { timeout: this.#endpoint.callTimeoutMs })
      .catch((error: unknown) => {
        throw this.#failure(tool, error);
      });
    const text = result.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const structured = isObject(result.structuredContent) ? result.structuredContent : {};
    if (result.isError) {
      throw toolError(text, structured);
    }
    return { text, structured };
  }

  /** Ends the session; a server that was started for it is stopped. Closing twice is fine. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#endpoint.leave();
    await this.#client.close();
    // A client that never connected leaves the transport, and so the server, as it is.
    await this.#endpoint.transport.close();
  }

  #failure(tool: string, error: unknown): WarmToolError {
    if (error instanceof ProtocolError) {
      return new WarmToolError(error.message, "internal", { jsonrpc_code: error.code });
    }
    if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult) {
      return new WarmToolError(`The server's answer to \`${tool}\` has the wrong shape: ${error.message}`);
    }
    return this.#closing === undefined ? this.#endpoint.lost(error) : closedError();
  }
}

function closedError(): WarmConnectionError {
  return new WarmConnectionError("This memory tool is closed. Connect again to use the memory.");
}

function toolError(text: string, structured: Readonly<Record<string, unknown>>): WarmToolError {
  const { message, code, details } = structured;
  return new WarmToolError(
    text || (typeof message === "string" ? message : "The server gave no reason"),
    typeof code === "string" ? code : "internal",
    isObject(details) ? details : {},
  );
}
