/** A Messages endpoint on the loopback interface that plays a script instead of running a model. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import type { Input } from "./support.js";

/** A block of a message's content. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Request {
  readonly messages: readonly { readonly content: string | readonly Block[] }[];
  readonly tools?: readonly Block[];
}

/** A turn that only speaks. */
export function say(text: string): Block[] {
  return [{ type: "text", text }];
}

let calls = 0;

/** A turn that calls tools: each is a tool's name and its input. */
export function use(...uses: readonly (readonly [string, Input])[]): Block[] {
  return uses.map(([name, input]) => ({ type: "tool_use", id: `toolu_${++calls}`, name, input }));
}

/** Answers each request with the next turn of the script, and keeps the requests. */
export class ScriptedEndpoint implements AsyncDisposable {
  readonly requests: Request[] = [];
  readonly #script: readonly (readonly Block[])[];
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk as Buffer);
    }
    const turn = this.#script[this.requests.length];
    this.requests.push(JSON.parse(Buffer.concat(chunks).toString("utf8")) as Request);
    // A request beyond the script gets an error that the SDK does not retry.
    response.writeHead(turn === undefined ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(turn === undefined ? { type: "error" } : message(turn)));
  });

  private constructor(script: readonly (readonly Block[])[]) {
    this.#script = script;
  }

  static async start(...script: readonly (readonly Block[])[]): Promise<ScriptedEndpoint> {
    const endpoint = new ScriptedEndpoint(script);
    await new Promise<void>((resolve) => {
      endpoint.#server.listen(0, "127.0.0.1", resolve);
    });
    return endpoint;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Every tool result that was sent, in order: each request ends with those of the turn before. */
  toolResults(): Block[] {
    const newest = this.requests.map((request) => request.messages.at(-1)?.content ?? []);
    return newest
      .flatMap((content) => (typeof content === "string" ? [] : content))
      .filter((block) => block.type === "tool_result");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function message(content: readonly Block[]): unknown {
  const calls = content.some((block) => block.type === "tool_use");
  return {
    id: "msg_scripted",
    type: "message",
    role: "assistant",
    model: "scripted",
    content,
    stop_reason: calls ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
}
