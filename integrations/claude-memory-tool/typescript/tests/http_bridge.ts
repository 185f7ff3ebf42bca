/**
 * A streamable HTTP server in this process, made with the official SDK, that hands each call to a real
 * `warm-mcp` on standard input and output.
 */

import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { Server } from "@modelcontextprotocol/server";
import type { ServerCommand } from "warm-memory-tool";

export interface BridgeOptions {
  /** The bearer token to ask for. */
  readonly token?: string;
  /** Answer in JSON and not in a stream of events. */
  readonly json?: boolean;
}

export class HttpBridge implements AsyncDisposable {
  /** What to do with a request before anything else; returns whether that was all. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  /** How many calls of tools arrived. */
  calls = 0;
  /** The methods of the requests that arrived. */
  readonly methods: (string | undefined)[] = [];
  readonly #options: BridgeOptions;
  readonly #backend = new Client({ name: "bridge", version: "0" });
  readonly #sessions = new Map<string, NodeStreamableHTTPServerTransport>();
  readonly #http = createServer((request, response) => void this.#handle(request, response));

  private constructor(options: BridgeOptions) {
    this.#options = options;
  }

  static async start(
    { command, args = [] }: ServerCommand,
    options: BridgeOptions = {},
  ): Promise<HttpBridge> {
    const bridge = new HttpBridge(options);
    await bridge.#backend.connect(new StdioClientTransport({ command, args: [...args], stderr: "ignore" }));
    await new Promise<void>((resolve) => {
      bridge.#http.listen(0, "127.0.0.1", resolve);
    });
    return bridge;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/mcp`;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Forgets every session, as a server that was restarted has. */
  forget(): void {
    this.#sessions.clear();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.methods.push(request.method);
    const { token } = this.#options;
    if (this.intercept(request, response)) {
      return;
    }
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      response.writeHead(401).end();
      return;
    }
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? this.#sessions.get(id) : undefined;
    if (id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    await (known ?? (await this.#session())).handleRequest(request, response);
  }

  async #session(): Promise<NodeStreamableHTTPServerTransport> {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: this.#options.json ?? false,
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    const server = new Server({ name: "bridge", version: "0" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/call", async (request) => {
      this.calls += 1;
      return await this.#backend.request({ method: "tools/call", params: request.params });
    });
    await server.connect(transport);
    return transport;
  }

  /** Stops listening and cuts every connection. */
  async stop(): Promise<void> {
    const stopped = new Promise((resolve) => this.#http.close(resolve));
    this.#http.closeAllConnections();
    await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#backend.close();
  }
}
