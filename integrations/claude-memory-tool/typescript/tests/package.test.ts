/** The package as it is installed: both module systems, types for both, nothing that should not be in it. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import * as imported from "warm-memory-tool";

import { EMPTY } from "./listing.js";
import { Store } from "./support.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const require = createRequire(import.meta.url);
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, unknown>;

test("import and require give the same names, each from its own build", () => {
  const required = require("warm-memory-tool") as typeof imported;
  assert.deepEqual(Object.keys(imported).sort(), ["WarmConnectionError", "WarmMemoryTool", "WarmToolError"]);
  assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort());
  assert.notEqual(required.WarmMemoryTool, imported.WarmMemoryTool);
});

test("the CommonJS build serves memories and throws the CommonJS SDK's tool error", async (t) => {
  const required = require("warm-memory-tool") as typeof imported;
  const sdk = require("@anthropic-ai/sdk/lib/tools/ToolError") as { ToolError: typeof Error };
  const memory = await required.WarmMemoryTool.connect({ connection: new Store(t).command() });
  t.after(() => memory.close());
  assert.equal(await memory.execute({ command: "view", path: "/memories" }), EMPTY);
  await assert.rejects(memory.execute({ command: "view", path: "/etc" }), sdk.ToolError);
});

test("the server is told the package's own name and version", async () => {
  const version = (await import(new URL("../../dist/esm/version.js", import.meta.url).href)) as object;
  assert.deepEqual({ ...version }, { NAME: manifest.name, VERSION: manifest.version });
});

test("the packed package, and the examples of its README, compile in strict programs of both kinds", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "warm-ts-package-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const listed = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const [packed] = Object.values(JSON.parse(listed)) as [
    { filename: string; files: readonly { path: string }[] },
  ];
  for (const { path } of packed.files) {
    assert.match(path, /^(dist\/(esm|cjs)\/[\w.]+|package\.json|README\.md)$/);
  }
  execFileSync("tar", ["-xzf", join(folder, packed.filename), "-C", folder]);
  // Beside the package lie its own dependencies and nothing else of this one's.
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const program = `
    import { WarmMemoryTool, WarmToolError, type RecallHit } from "warm-memory-tool";
    export async function main(): Promise<readonly RecallHit[]> {
      const memory = await WarmMemoryTool.connect({ connection: { command: "warm-mcp", args: ["--log", "off"] } });
      const tools = [memory.asTool(), memory.recallTool()];
      try {
        const text: string = await memory.execute({ command: "view", path: "/memories" });
        return text === "" && tools.length === 0 ? [] : await memory.recall("x", 3);
      } catch (error) {
        throw error instanceof WarmToolError ? new Error(error.code) : error;
      } finally {
        await memory.close();
      }
    }
    // @ts-expect-error A server is either started or reached.
    void WarmMemoryTool.connect({ connection: { args: [] } });
    // @ts-expect-error An unknown option is an error.
    void WarmMemoryTool.connect({ connection: { command: "warm-mcp" }, colour: "red" });
  `;
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const options = ["--strict", "--noEmit", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
  const target = ["--module", "nodenext", "--target", "es2022", "--types", "node"];
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const examples = [...readme.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.equal(examples.length, 2);
  const programs = new Map([
    ["esm.mts", program],
    ["cjs.cts", program],
    ...examples.map((example, number) => [`readme-${number}.mts`, example] as const),
  ]);
  for (const [file, text] of programs) {
    const build = file.endsWith(".cts") ? "cjs" : "esm";
    const entry = `"./package/dist/${build}/index.js"`;
    writeFileSync(join(folder, file), text.replace('"warm-memory-tool"', entry));
  }
  execFileSync(process.execPath, [compiler, ...options, ...target, ...programs.keys()], {
    cwd: folder,
    stdio: "inherit",
  });
});

test("every file that the manifest names is there", () => {
  const named = JSON.stringify(manifest).match(/\.\/dist\/[^"]+/g) ?? [];
  assert.ok(named.length >= 6);
  for (const path of named) {
    assert.ok(existsSync(join(ROOT, path)), path);
  }
});
