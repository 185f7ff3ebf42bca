/** Every command: what it does and the exact string it answers with. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { EMPTY, listing, numbered, snippet } from "./listing.js";
import type { Input } from "./support.js";
import { hands } from "./support.js";

const NOTES = "/memories/notes.md";

describe("view", () => {
  test("of an empty store succeeds", async (t) => {
    const { view } = await hands(t);
    assert.equal(await view("/memories"), EMPTY);
  });

  test("of a directory lists two levels with sizes summed", async (t) => {
    const { create, view } = await hands(t);
    await create("/memories/b.txt", "x".repeat(5632));
    await create("/memories/a/one.txt", "12345");
    await create("/memories/a/deep/two.txt", "1".repeat(1024));
    await create("/memories/a/deep/deeper/three.txt", "123");
    assert.equal(
      await view("/memories"),
      listing(
        "/memories",
        [5632 + 5 + 1024 + 3, "/memories"],
        [5 + 1024 + 3, "/memories/a/"],
        [1024 + 3, "/memories/a/deep/"],
        [5, "/memories/a/one.txt"],
        [5632, "/memories/b.txt"],
      ),
    );
    assert.equal(
      await view("/memories/a"),
      listing(
        "/memories/a",
        [5 + 1024 + 3, "/memories/a"],
        [1024 + 3, "/memories/a/deep/"],
        [3, "/memories/a/deep/deeper/"],
        [1024, "/memories/a/deep/two.txt"],
        [5, "/memories/a/one.txt"],
      ),
    );
  });

  test("of a directory orders entries by name within their directory", async (t) => {
    const { create, view } = await hands(t);
    for (const name of ["a.txt", "a/z", "a-b", "B", "é"]) {
      await create(`/memories/${name}`, "1");
    }
    const shown = (await view("/memories")).split("\n").slice(2);
    assert.deepEqual(
      shown.map((line) => line.split("\t")[1]),
      ["B", "a/", "a/z", "a-b", "a.txt", "é"].map((name) => `/memories/${name}`),
    );
  });

  for (const [size, shown] of [
    [0, "0B"],
    [1, "1B"],
    [1023, "1023B"],
    [1024, "1K"],
    [1536, "1.5K"],
    [5632, "5.5K"],
    [32768, "32K"],
  ] as const) {
    test(`of a directory shows ${size} bytes as ${shown}`, async (t) => {
      const { create, view } = await hands(t);
      await create("/memories/f", "x".repeat(size));
      assert.ok((await view("/memories")).endsWith(`\n${shown}\t/memories\n${shown}\t/memories/f`));
    });
  }

  test("of a directory leaves node_modules out", async (t) => {
    const { create, view } = await hands(t);
    await create("/memories/node_modules/x.js", "1");
    await create("/memories/kept.js", "1");
    const shown = await view("/memories");
    assert.ok(!shown.includes("node_modules/"));
    assert.ok(shown.includes("/memories/kept.js"));
  });

  test("of a file numbers lines from one in six columns", async (t) => {
    const { create, view } = await hands(t);
    await create(NOTES, "first\n\n\tthird");
    assert.equal(
      await view(NOTES),
      "Here's the content of /memories/notes.md with line numbers:\n" +
        "     1\tfirst\n     2\t\n     3\t\tthird",
    );
  });

  test("of a file shows no line after a trailing newline", async (t) => {
    const { create, view } = await hands(t);
    await create(NOTES, "one\ntwo\n");
    assert.equal(await view(NOTES), numbered(NOTES, ["one", "two"]));
  });

  test("of an empty file is its header", async (t) => {
    const { create, view } = await hands(t);
    await create(NOTES, "");
    assert.equal(await view(NOTES), "Here's the content of /memories/notes.md with line numbers:\n");
  });

  for (const [range, first, last] of [
    [[1, 1], 1, 1],
    [[2, 3], 2, 3],
    [[3, -1], 3, 5],
    [[1, -1], 1, 5],
    [[4, 99], 4, 5],
    [[0, 2], 1, 2],
  ] as const) {
    test(`with the range [${range}] shows the lines that exist`, async (t) => {
      const { create, view } = await hands(t);
      const texts = ["one", "two", "three", "four", "five"];
      await create(NOTES, `${texts.join("\n")}\n`);
      assert.equal(await view(NOTES, range), numbered(NOTES, texts.slice(first - 1, last), first));
    });
  }

  for (const range of [
    [6, 9],
    [6, -1],
    [4, 2],
  ]) {
    test(`with the range [${range}], which has no lines, shows the header alone`, async (t) => {
      const { create, view } = await hands(t);
      await create(NOTES, "1\n2\n3\n4\n5\n");
      assert.equal(
        (await view(NOTES, range)).trimEnd(),
        "Here's the content of /memories/notes.md with line numbers:",
      );
    });
  }

  test("of a missing path is refused", async (t) => {
    const { refused } = await hands(t);
    const error = await refused("view", { path: NOTES });
    assert.equal(error.message, "The path /memories/notes.md does not exist. Please provide a valid path.");
    assert.equal(error.code, "not_found");
  });
});

describe("create", () => {
  test("answers with the path", async (t) => {
    const { create, view } = await hands(t);
    assert.equal(await create(NOTES, "x"), "File created successfully at: /memories/notes.md");
    assert.equal(await view(NOTES), numbered(NOTES, ["x"]));
  });

  test("never overwrites", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "old");
    const error = await refused("create", { path: NOTES, file_text: "new" });
    assert.equal(error.message, "File /memories/notes.md already exists");
    assert.equal(error.code, "already_exists");
    assert.equal(await view(NOTES), numbered(NOTES, ["old"]));
  });

  test("refuses the path of a directory", async (t) => {
    const { create, refused } = await hands(t);
    await create("/memories/dir/sub/f", "x");
    for (const path of ["/memories", "/memories/dir", "/memories/dir/sub"]) {
      const error = await refused("create", { path, file_text: "y" });
      assert.equal(error.message, `File ${path} already exists`);
    }
  });

  test("refuses a path under a file and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create("/memories/f", "x");
    const before = await view("/memories");
    for (const path of ["/memories/f/x", "/memories/f/x/y"]) {
      assert.match((await refused("create", { path, file_text: "y" })).message, /\/memories\/f/);
    }
    assert.equal(await view("/memories"), before);
  });
});

describe("str_replace", () => {
  test("answers with a snippet of two lines around", async (t) => {
    const { create, run } = await hands(t);
    await create(NOTES, "1\n2\n3\nfour\n5\n6\n7\n");
    assert.equal(
      await run("str_replace", { path: NOTES, old_str: "four", new_str: "4" }),
      snippet(["2", "3", "4", "5", "6"], 2),
    );
  });

  test("at the end shows the empty last line in the snippet", async (t) => {
    const { create, run } = await hands(t);
    await create(NOTES, "one\ntwo\n");
    assert.equal(
      await run("str_replace", { path: NOTES, old_str: "two", new_str: "2" }),
      snippet(["one", "2", ""]),
    );
  });

  test("replaces a text of several lines", async (t) => {
    const { create, run, view } = await hands(t);
    await create(NOTES, "a\nb\nc\n");
    await run("str_replace", { path: NOTES, old_str: "a\nb", new_str: "ab" });
    assert.equal(await view(NOTES), numbered(NOTES, ["ab", "c"]));
  });

  for (const new_str of [undefined, null]) {
    test(`deletes when new_str is ${new_str}`, async (t) => {
      const { create, run, view } = await hands(t);
      await create(NOTES, "keep drop keep");
      assert.equal(
        await run("str_replace", { path: NOTES, old_str: " drop", new_str }),
        snippet(["keep keep"]),
      );
      assert.equal(await view(NOTES), numbered(NOTES, ["keep keep"]));
    });
  }

  test("takes the new text literally", async (t) => {
    const { create, run, view } = await hands(t);
    await create(NOTES, "a.c abc");
    const text = String.raw`\1 $0 $& $' ${"$"}{name} \g<0> % {} \n`;
    await run("str_replace", { path: NOTES, old_str: "a.c", new_str: text });
    assert.equal(await view(NOTES), numbered(NOTES, [`${text} abc`]));
  });

  test("of absent text is refused and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "one\ntwo\n");
    const error = await refused("str_replace", { path: NOTES, old_str: "three", new_str: "3" });
    assert.equal(
      error.message,
      "No replacement was performed, old_str `three` did not appear verbatim in /memories/notes.md.",
    );
    assert.equal(await view(NOTES), numbered(NOTES, ["one", "two"]));
  });

  test("of repeated text names every line and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "same\nother\nsame\n");
    const error = await refused("str_replace", { path: NOTES, old_str: "same", new_str: "x" });
    assert.equal(
      error.message,
      "No replacement was performed. Multiple occurrences of old_str `same` in lines: 1, 3. " +
        "Please ensure it is unique",
    );
    assert.equal(error.code, "invalid_argument");
    assert.equal(await view(NOTES), numbered(NOTES, ["same", "other", "same"]));
  });

  test("of nothing is refused and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "x");
    const error = await refused("str_replace", { path: NOTES, old_str: "", new_str: "y" });
    assert.match(error.message, /old_str/);
    assert.equal(error.code, "invalid_argument");
    assert.equal(await view(NOTES), numbered(NOTES, ["x"]));
  });
});

const EDITS: readonly (readonly [string, Input])[] = [
  ["str_replace", { old_str: "a", new_str: "b" }],
  ["insert", { insert_line: 0, insert_text: "x" }],
];
for (const [command, fields] of EDITS) {
  test(`${command} of what is no file is refused`, async (t) => {
    const { create, refused } = await hands(t);
    await create("/memories/dir/f", "a");
    for (const path of ["/memories/none", "/memories/dir/f/below"]) {
      const error = await refused(command, { path, ...fields });
      assert.equal(error.message, `The path ${path} does not exist. Please provide a valid path.`);
    }
    for (const path of ["/memories", "/memories/dir"]) {
      assert.equal((await refused(command, { path, ...fields })).message, `The path ${path} is not a file.`);
    }
  });
}

describe("insert", () => {
  for (const [insert_line, after] of [
    [0, ["new", "one", "two"]],
    [1, ["one", "new", "two"]],
    [2, ["one", "two", "new"]],
  ] as const) {
    test(`puts the text after line ${insert_line}`, async (t) => {
      const { create, run, view } = await hands(t);
      await create(NOTES, "one\ntwo\n");
      assert.equal(
        await run("insert", { path: NOTES, insert_line, insert_text: "new\n" }),
        "The file /memories/notes.md has been edited.",
      );
      assert.equal(await view(NOTES), numbered(NOTES, after));
    });
  }

  test("outside the file names the range and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "one\ntwo\n");
    for (const insert_line of [-1, 3, 10 ** 12]) {
      const error = await refused("insert", { path: NOTES, insert_line, insert_text: "x" });
      assert.equal(
        error.message,
        `Invalid \`insert_line\` parameter: ${insert_line}. It should be within the range [0, 2].`,
      );
    }
    assert.equal(await view(NOTES), numbered(NOTES, ["one", "two"]));
  });

  test("ends the file with a newline", async (t) => {
    const { create, run } = await hands(t);
    await create(NOTES, "one");
    await run("insert", { path: NOTES, insert_line: 1, insert_text: "two" });
    // The snippet of an edit shows the empty line after a final newline.
    assert.equal(
      await run("str_replace", { path: NOTES, old_str: "one", new_str: "1" }),
      snippet(["1", "two", ""]),
    );
  });

  test("into an empty file makes its first line", async (t) => {
    const { create, refused, run, view } = await hands(t);
    await create(NOTES, "");
    const error = await refused("insert", { path: NOTES, insert_line: 1, insert_text: "x" });
    assert.ok(error.message.endsWith("the range [0, 0]."));
    await run("insert", { path: NOTES, insert_line: 0, insert_text: "x" });
    assert.equal(await view(NOTES), numbered(NOTES, ["x"]));
  });
});

describe("delete", () => {
  test("takes a file", async (t) => {
    const { create, run, view } = await hands(t);
    await create(NOTES, "x");
    assert.equal(await run("delete", { path: NOTES }), "Successfully deleted /memories/notes.md");
    assert.equal(await view("/memories"), EMPTY);
  });

  test("takes a directory with everything under it and nothing else", async (t) => {
    const { create, run, view } = await hands(t);
    for (const path of ["/memories/d/a", "/memories/d/e/b", "/memories/d.txt", "/memories/da/c"]) {
      await create(path, "x");
    }
    assert.equal(await run("delete", { path: "/memories/d" }), "Successfully deleted /memories/d");
    assert.equal(
      await view("/memories"),
      listing(
        "/memories",
        [2, "/memories"],
        [1, "/memories/d.txt"],
        [1, "/memories/da/"],
        [1, "/memories/da/c"],
      ),
    );
  });

  test("of the root is refused", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "x");
    const error = await refused("delete", { path: "/memories" });
    assert.equal(error.message, "Cannot delete the /memories directory itself");
    assert.equal(await view(NOTES), numbered(NOTES, ["x"]));
  });

  test("of a missing path is refused", async (t) => {
    const { create, refused } = await hands(t);
    assert.equal(
      (await refused("delete", { path: NOTES })).message,
      "The path /memories/notes.md does not exist",
    );
    await create(NOTES, "x");
    assert.equal(
      (await refused("delete", { path: `${NOTES}/x` })).message,
      "The path /memories/notes.md/x does not exist",
    );
  });
});

describe("rename", () => {
  test("moves a file and makes the directories it needs", async (t) => {
    const { create, run, view } = await hands(t);
    await create(NOTES, "x\n");
    assert.equal(
      await run("rename", { old_path: NOTES, new_path: "/memories/a/b/c.md" }),
      "Successfully renamed /memories/notes.md to /memories/a/b/c.md",
    );
    assert.equal(await view("/memories/a/b/c.md"), numbered("/memories/a/b/c.md", ["x"]));
    assert.ok(!(await view("/memories")).includes("notes.md"));
  });

  test("moves a whole directory", async (t) => {
    const { create, run, view } = await hands(t);
    await create("/memories/old/a", "1");
    await create("/memories/old/sub/b", "22");
    await create("/memories/older", "333");
    assert.equal(
      await run("rename", { old_path: "/memories/old", new_path: "/memories/new" }),
      "Successfully renamed /memories/old to /memories/new",
    );
    assert.equal(
      await view("/memories"),
      listing(
        "/memories",
        [6, "/memories"],
        [3, "/memories/new/"],
        [1, "/memories/new/a"],
        [2, "/memories/new/sub/"],
        [3, "/memories/older"],
      ),
    );
    assert.equal(await view("/memories/new/sub/b"), numbered("/memories/new/sub/b", ["22"]));
  });

  test("onto something is refused and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    for (const path of ["/memories/from", "/memories/there", "/memories/dir/f"]) {
      await create(path, path);
    }
    const before = await view("/memories");
    for (const new_path of ["/memories/there", "/memories/dir", "/memories", "/memories/from"]) {
      const error = await refused("rename", { old_path: "/memories/from", new_path });
      assert.equal(error.message, `The destination ${new_path} already exists`);
      assert.equal(error.code, "already_exists");
    }
    assert.equal(await view("/memories"), before);
  });

  test("of the root is refused", async (t) => {
    const { refused } = await hands(t);
    const error = await refused("rename", { old_path: "/memories", new_path: "/memories/x" });
    assert.equal(error.message, "Cannot rename the /memories directory itself");
  });

  test("of a missing path is refused", async (t) => {
    const { refused } = await hands(t);
    const error = await refused("rename", { old_path: "/memories/none", new_path: "/memories/x" });
    assert.equal(error.message, "The path /memories/none does not exist");
    assert.equal(error.code, "not_found");
  });

  test("into itself or under a file is refused and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create("/memories/dir/f", "x");
    await create("/memories/other", "x");
    const before = await view("/memories");
    for (const new_path of ["/memories/dir/sub", "/memories/dir/f/x"]) {
      const error = await refused("rename", { old_path: "/memories/dir", new_path });
      assert.equal(error.code, "invalid_argument");
    }
    await refused("rename", { old_path: "/memories/other", new_path: "/memories/dir/f/x" });
    assert.equal(await view("/memories"), before);
  });
});

describe("what is not a command", () => {
  test("a missing or mistyped field is an invalid argument and changes nothing", async (t) => {
    const { create, refused, view } = await hands(t);
    await create(NOTES, "x");
    for (const { command, ...fields } of [
      { command: "create", path: NOTES },
      { command: "view" },
      { command: "insert", path: NOTES, insert_text: "x" },
      { command: "insert", path: NOTES, insert_line: "one", insert_text: "x" },
      { command: "view", path: 3 },
      { command: "rename", old_path: NOTES },
    ]) {
      assert.equal((await refused(command, fields)).code, "invalid_argument");
    }
    assert.equal(await view(NOTES), numbered(NOTES, ["x"]));
  });

  test("an unknown command is refused with the list of commands", async (t) => {
    const { refused } = await hands(t);
    const error = await refused("append", { path: NOTES });
    assert.equal(error.code, "invalid_argument");
    assert.equal(
      error.message,
      "Unknown memory command: append. " +
        "It must be one of view, create, str_replace, insert, delete, rename",
    );
  });

  test("a field beyond the documented ones is left out", async (t) => {
    const { run } = await hands(t);
    await run("create", { path: NOTES, file_text: "x", comment: "ignored", old_str: "ignored" });
  });
});

test("clearAllMemory forgets every file", async (t) => {
  const { create, memory, view } = await hands(t);
  await create(NOTES, "x");
  await create("/memories/a/b", "x");
  assert.equal(await memory.clearAllMemory(), "All memory cleared");
  assert.equal(await view("/memories"), EMPTY);
  assert.equal(await memory.clearAllMemory(), "All memory cleared");
});
