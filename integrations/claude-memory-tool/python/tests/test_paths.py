"""Path rules: what is refused before any storage is touched, and what is an ordinary name."""

from __future__ import annotations

import pytest

from conftest import Do, Refused
from listing import EMPTY, listing, numbered

MUST_START = "Path must start with /memories, got: {path}"
WOULD_ESCAPE = "Path {path} would escape /memories directory"

OUTSIDE = [
    "/",
    "/etc/passwd",
    "memories/x",
    "",
    "/Memories/x",
    " /memories/x",
    "/memories_backup/f.txt",
    "/memoriesX",
]
ESCAPING = [
    "/memories/..",
    "/memories/../etc/x",
    "/memories/../memories/x",
    "/memories/a/../b.txt",
    "/memories/a/b/../../../x",
    "/memories/x/..",
]
BROKEN = [
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
]
REFUSED = [*OUTSIDE, *ESCAPING, *BROKEN]


def commands_on(path: str) -> list[tuple[str, dict[str, object]]]:
    """Return all six commands, on `path` wherever a path is taken."""
    return [
        ("view", {"path": path}),
        ("create", {"path": path, "file_text": "x"}),
        ("str_replace", {"path": path, "old_str": "a", "new_str": "b"}),
        ("insert", {"path": path, "insert_line": 0, "insert_text": "x"}),
        ("delete", {"path": path}),
        ("rename", {"old_path": path, "new_path": "/memories/free"}),
        ("rename", {"old_path": "/memories/b.txt", "new_path": path}),
    ]


@pytest.mark.parametrize("path", REFUSED)
def test_every_command_refuses_the_path_and_changes_nothing(do: Do, refused: Refused, path: str) -> None:
    do("create", path="/memories/b.txt", file_text="a")
    before = do("view", path="/memories")
    for command, fields in commands_on(path):
        error = refused(command, **fields)
        assert error.code == "invalid_argument", (command, str(error))
        assert str(error).startswith(("Path ", "Invalid path")), (command, str(error))
    assert do("view", path="/memories") == before
    assert do("view", path="/memories/b.txt") == numbered("/memories/b.txt", "a")


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_outside_memories_is_named_in_the_error(refused: Refused, path: str) -> None:
    for command, fields in commands_on(path)[:5]:
        assert str(refused(command, **fields)) == MUST_START.format(path=path)


@pytest.mark.parametrize("path", ESCAPING)
def test_a_path_that_climbs_is_named_in_the_error(refused: Refused, path: str) -> None:
    for command, fields in commands_on(path)[:5]:
        assert str(refused(command, **fields)) == WOULD_ESCAPE.format(path=path)


@pytest.mark.parametrize("path", ["/memories_backup/f.txt", "/memoriesX"])
def test_a_name_that_only_begins_like_memories_leaves_the_store_empty(
    do: Do, refused: Refused, path: str
) -> None:
    for command, fields in commands_on(path):
        refused(command, **fields)
    assert do("view", path="/memories") == EMPTY


@pytest.mark.parametrize("path", ["/memories/a/../b.txt", "/memories//b.txt", "/memories/./b.txt"])
def test_another_spelling_of_a_path_makes_no_second_entry(do: Do, refused: Refused, path: str) -> None:
    do("create", path="/memories/b.txt", file_text="x")
    refused("create", path=path, file_text="y")
    refused("view", path=path)
    assert do("view", path="/memories") == listing("/memories", (1, "/memories"), (1, "/memories/b.txt"))


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_an_ordinary_name_is_accepted(do: Do, name: str) -> None:
    path = f"/memories/{name}"
    do("create", path=path, file_text="x")
    assert do("view", path=path) == numbered(path, "x")
    assert do("view", path="/memories") == listing("/memories", (1, "/memories"), (1, path))
    do("rename", old_path=path, new_path=f"/memories/dir/{name}")
    do("delete", path=f"/memories/dir/{name}")
    assert do("view", path="/memories") == EMPTY


def test_names_that_differ_in_case_are_different_files(do: Do) -> None:
    do("create", path="/memories/Readme", file_text="upper")
    do("create", path="/memories/readme", file_text="lower")
    assert do("view", path="/memories/Readme") == numbered("/memories/Readme", "upper")
    assert do("view", path="/memories/readme") == numbered("/memories/readme", "lower")


def test_composed_and_decomposed_names_are_different_files_with_their_own_bytes(do: Do) -> None:
    composed, decomposed = "/memories/caf\u00e9.md", "/memories/cafe\u0301.md"
    do("create", path=composed, file_text="composed \u00e9 and decomposed e\u0301")
    do("create", path=decomposed, file_text="decomposed e\u0301")
    assert do("view", path=composed) == numbered(composed, "composed \u00e9 and decomposed e\u0301")
    assert do("view", path=decomposed) == numbered(decomposed, "decomposed e\u0301")
    shown = do("view", path="/memories")
    assert composed in shown
    assert decomposed in shown
