/** From what a model sends to the arguments of the server's `memory` tool. */

import type { BetaMemoryTool20250818Command } from "@anthropic-ai/sdk/resources/beta";

import { WarmToolError } from "./errors.js";

const FIELDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    view: ["path", "view_range"],
    create: ["path", "file_text"],
    str_replace: ["path", "old_str", "new_str"],
    insert: ["path", "insert_line", "insert_text"],
    delete: ["path"],
    rename: ["old_path", "new_path"],
  } satisfies Record<BetaMemoryTool20250818Command["command"], readonly string[]>),
);

/** Returns `input` if it names one of the six commands; otherwise throws an error that lists them. */
export function checkedInput(input: unknown): BetaMemoryTool20250818Command {
  if (!isObject(input)) {
    throw new WarmToolError("The memory tool takes an object with a `command`", "invalid_argument");
  }
  const { command } = input;
  if (typeof command !== "string" || !FIELDS.has(command)) {
    const known = [...FIELDS.keys()].join(", ");
    throw new WarmToolError(
      `Unknown memory command: ${shown(command)}. It must be one of ${known}`,
      "invalid_argument",
    );
  }
  // Whether the fields fit the command is for the server to say.
  return input as unknown as BetaMemoryTool20250818Command;
}

/**
 * Returns the documented fields that `command` carries, and no others.
 *
 * A field that is missing or null is left out: what is required, and what type it must have, is for
 * the server to say.
 */
export function commandArguments(command: BetaMemoryTool20250818Command): Record<string, unknown> {
  const given = new Map<string, unknown>(Object.entries(command));
  const names = FIELDS.get(command.command) ?? [];
  return withoutMissing({
    command: command.command,
    ...Object.fromEntries(names.map((name) => [name, given.get(name)])),
  });
}

/** Returns the fields that have a value. */
export function withoutMissing(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}

/**
 * Refuses text that no message can carry.
 *
 * A model can escape half of a surrogate pair in JSON. A JavaScript string keeps it, but UTF-8 has no
 * bytes for it.
 */
export function refuseUnencodable(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === "string" && !value.isWellFormed()) {
      const at = [...value].findIndex((character) => !character.isWellFormed());
      throw new WarmToolError(
        `Invalid \`${name}\`: it holds an unpaired surrogate at character ${at}; send the whole character instead`,
        "invalid_argument",
      );
    }
  }
}

/** Whether a value is an object with named fields. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(command: unknown): string {
  return typeof command === "string" ? command : (JSON.stringify(command) ?? String(command));
}
