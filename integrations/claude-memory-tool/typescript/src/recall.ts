/** What a recall finds: typed for programs, in words for a model. */

import { isObject } from "./command.js";

export const RECALL_TOOL_NAME = "memory_recall";

export const RECALL_TOOL_DESCRIPTION =
  "Search the memory directory. Returns the memory files that are most relevant to a query in plain " +
  "language, best first, each with its path, a relevance score, the lines that match best and an " +
  "excerpt. Use it to find what was remembered when you do not know which file holds it; then view " +
  "the file for the whole text.";

/** One memory file that a recall found. */
export interface RecallHit {
  readonly path: string;
  /** What results are ordered by; comparable only within one recall. */
  readonly score: number;
  /** From the passage that matches best, around the words of the query. */
  readonly excerpt: string;
  /** First and last line of that passage, counted from 1. */
  readonly lines: readonly [number, number];
  /** The version that was searched; it changes on every write. */
  readonly version: string;
  /** When the file was last written: RFC 3339, UTC. */
  readonly updatedAt: string;
  /** The part of the score that words give. */
  readonly lexicalScore: number | null;
  /** The part of the score that meaning gives; null when recall is lexical. */
  readonly semanticScore: number | null;
  readonly title: string | null;
  readonly tags: readonly string[];
}

/** The answer to a recall: the hits, best first, and how they were found. */
export type RecallResults = readonly RecallHit[] & {
  /** How the server searched: `lexical`, `hybrid` or `semantic`. */
  readonly mode: string;
  /** How many files matched. */
  readonly total: number;
  /** Whether some that matched are not among the hits. */
  readonly truncated: boolean;
};

/** Reads the structured content of the server's `recall`; throws a `TypeError` if it has another shape. */
export function parseRecall(content: Readonly<Record<string, unknown>>): RecallResults {
  const hits = list(content, "results").map(parseHit);
  const mode = text(content, "mode");
  return Object.assign(hits, {
    mode,
    total: number(content, "total"),
    truncated: content.truncated === true,
  });
}

function parseHit(hit: unknown): RecallHit {
  if (!isObject(hit)) {
    throw new TypeError("a result is no object");
  }
  const [first, last] = list(hit, "lines");
  if (typeof first !== "number" || typeof last !== "number") {
    throw new TypeError("`lines` is no pair of numbers");
  }
  return {
    path: text(hit, "key"),
    score: number(hit, "score"),
    excerpt: text(hit, "excerpt"),
    lines: [first, last],
    version: text(hit, "version"),
    updatedAt: text(hit, "updated_at"),
    lexicalScore: typeof hit.lexical_score === "number" ? hit.lexical_score : null,
    semanticScore: typeof hit.semantic_score === "number" ? hit.semantic_score : null,
    title: typeof hit.title === "string" ? hit.title : null,
    tags: Array.isArray(hit.tags) ? hit.tags.map(String) : [],
  };
}

function list(fields: Readonly<Record<string, unknown>>, name: string): readonly unknown[] {
  const value = fields[name];
  if (!Array.isArray(value)) {
    throw new TypeError(`\`${name}\` is no list`);
  }
  return value;
}

function text(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") {
    throw new TypeError(`\`${name}\` is no text`);
  }
  return value;
}

function number(fields: Readonly<Record<string, unknown>>, name: string): number {
  const value = fields[name];
  if (typeof value !== "number") {
    throw new TypeError(`\`${name}\` is no number`);
  }
  return value;
}

/** Says in words what was found, for a model to read. */
export function recallText(query: string, results: RecallResults): string {
  if (results.length === 0) {
    return `No memory file matches: ${query}\nTry other words, or view /memories to see which files there are.`;
  }
  const shown = results.truncated ? `${results.length} of ${results.total}` : `${results.length}`;
  const noun = results.total === 1 ? "file" : "files";
  const head = `Found ${shown} matching memory ${noun}, most relevant first:`;
  return [head, ...results.map((hit, index) => hitText(index + 1, hit))].join("\n\n");
}

function hitText(rank: number, hit: RecallHit): string {
  const [first, last] = hit.lines;
  const lines = first === last ? `line ${first}` : `lines ${first}-${last}`;
  const title = hit.title ? ` ${hit.title}` : "";
  const excerpt = hit.excerpt.replace(/^/gm, "   ");
  return `${rank}. ${hit.path}${title} (score ${hit.score.toFixed(3)}, ${lines})\n${excerpt}`;
}
