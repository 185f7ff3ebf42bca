/**
 * Anthropic's memory tool, served from a sealed and searchable WARM store.
 *
 * `WarmMemoryTool` plugs into the tool runner of `@anthropic-ai/sdk`. It keeps one connection to a
 * `warm-mcp` server and turns every memory command into one call of it; the rules, the limits and the
 * exact strings all live in the server.
 */

export type { ServerAddress, ServerCommand } from "./endpoint.js";
export { WarmConnectionError, WarmToolError } from "./errors.js";
export type { ConnectOptions } from "./memory_tool.js";
export { WarmMemoryTool } from "./memory_tool.js";
export type { RecallHit, RecallResults } from "./recall.js";
