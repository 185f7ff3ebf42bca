/** Path rules: what is refused before any storage is touched, and what is an ordinary name. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { EMPTY, listing, numbered } from "./listing.js";
import type { Input } from "./support.js";
import { hands } from "./support.js";

const OUTSIDE = [
  "/",
  "/etc/passwd",
  "memories/x",
  "",
  "/Memories/x",
  " /memories/x",
  "/memories_backup/f.txt",
  "/memoriesX",
];
const ESCAPING = [
  "/memories/..",
  "/memories/../etc/x",
  "/memories/../memories/x",
  "/memories/a/../b.txt",
  "/memories/a/b/../../../x",
  "/memories/x/..",
];
const BROKEN = [
  "/memories\\..\\x",
  "/memories/a\\b",
  "/memories/..\\x",
  "/memories/a\0b",
  "/memories/a\nb",
  "/memories/a\x7fb",
  "/memories/%2e%2e/x",
  "/memories/%2E%2e%2Fx",
  "/memories/a%2fb",
  "/memories/a%5Cb",
  "/memories/.hidden",
  "/memories/.git/config",
  "/memories/a/.env",
  "/memories/./b.txt",
  "/memories/.",
  "/memories//b.txt",
  "/memories/",
  "/memories/a/",
  "//memories/x",
  "/memories/...",
];

/** All six commands, on `path` wherever a path is taken. */
function commandsOn(path: string): (readonly [string, Input])[] {
  return [
    ["view", { path }],
    ["create", { path, file_text: "x" }],
    ["str_replace", { path, old_str: "a", new_str: "b" }],
    ["insert", { path, insert_line: 0, insert_text: "x" }],
    ["delete", { path }],
    ["rename", { old_path: path, new_path: "/memories/free" }],
    ["rename", { old_path: "/memories/b.txt", new_path: path }],
  ];
}

/** The message for a path that is refused; undefined where only its beginning is promised. */
function message(path: string): string | undefined {
  if (OUTSIDE.includes(path)) {
    return `Path must start with /memories, got: ${path}`;
  }
  return ESCAPING.includes(path) ? `Path ${path} would escape /memories directory` : undefined;
}

describe("every command refuses, and changes nothing:", () => {
  for (const path of [...OUTSIDE, ...ESCAPING, ...BROKEN]) {
    test(JSON.stringify(path), async (t) => {
      const { create, refused, view } = await hands(t);
      await create("/memories/b.txt", "a");
      const before = await view("/memories");
      for (const [command, fields] of commandsOn(path)) {
        const error = await refused(command, fields);
        assert.equal(error.code, "invalid_argument", `${command}: ${error.message}`);
        assert.match(error.message, /^(Path |Invalid path)/);
        assert.equal(error.message, message(path) ?? error.message);
      }
      assert.equal(await view("/memories"), before);
      assert.equal(await view("/memories/b.txt"), numbered("/memories/b.txt", ["a"]));
    });
  }
});

for (const path of ["/memories/a/../b.txt", "/memories//b.txt", "/memories/./b.txt"]) {
  test(`${path}, another spelling of a path, makes no second entry`, async (t) => {
    const { create, refused, view } = await hands(t);
    await create("/memories/b.txt", "x");
    await refused("create", { path, file_text: "y" });
    await refused("view", { path });
    assert.equal(await view("/memories"), listing("/memories", [1, "/memories"], [1, "/memories/b.txt"]));
  });
}

describe("an ordinary name is accepted:", () => {
  for (const name of [
    "a..b.txt",
    "a.",
    "a..",
    "100%.txt",
    "100%25.txt",
    "with space.md",
    " lead",
    "~",
    "*?[a]",
    "-rf",
    "$HOME",
    "a:b",
    "a'b\"c",
    "日本語.md",
    "🚀",
    "con",
    "memories",
    "__proto__",
    "constructor",
  ]) {
    test(name, async (t) => {
      const { create, run, view } = await hands(t);
      const path = `/memories/${name}`;
      await create(path, "x");
      assert.equal(await view(path), numbered(path, ["x"]));
      assert.equal(await view("/memories"), listing("/memories", [1, "/memories"], [1, path]));
      await run("rename", { old_path: path, new_path: `/memories/dir/${name}` });
      await run("delete", { path: `/memories/dir/${name}` });
      assert.equal(await view("/memories"), EMPTY);
    });
  }
});

test("names that differ in case, or in how they are composed, are different files", async (t) => {
  const { create, view } = await hands(t);
  const names = ["Readme", "readme", "caf\u00e9.md", "cafe\u0301.md"];
  for (const name of names) {
    await create(`/memories/${name}`, name);
  }
  const shown = await view("/memories");
  for (const name of names) {
    assert.equal(await view(`/memories/${name}`), numbered(`/memories/${name}`, [name]));
    assert.ok(shown.includes(`\t/memories/${name}`));
  }
});
