/** What goes wrong, in the form that the tool runner reports to the model. */

import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";

/**
 * A command that was refused or failed.
 *
 * The message is the server's own, word for word; the tool runner makes it the content of the tool
 * result, with `is_error` set.
 */
export class WarmToolError extends ToolError {
  /**
   * The server's name for the kind of failure: `invalid_argument`, `too_large`, `not_found`,
   * `already_exists`, `version_conflict`, `store_unavailable`, `busy`, `forbidden` or `internal`.
   */
  readonly code: string;
  /** Whatever else the server said; empty when it said nothing. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(message: string, code = "internal", details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = "WarmToolError";
    this.code = code;
    this.details = details;
  }
}

/**
 * There is no server to ask: it could not be started or reached, it has stopped, or this tool was closed.
 *
 * Nothing is known of a command that was under way; one that had been answered is in the store.
 */
export class WarmConnectionError extends WarmToolError {
  constructor(message: string) {
    super(message, "store_unavailable");
    this.name = "WarmConnectionError";
  }
}
