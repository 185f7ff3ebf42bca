"""Limits, each at the limit and one beyond, and long views that page."""

from __future__ import annotations

import re

import pytest

from conftest import Connect, Do, Refused
from listing import EMPTY, numbered
from warm_memory_tool import WarmMemoryToolSync, WarmToolError

FILE_BYTES = 32 * 1024
VIEW_CHARS = 16_000
NAME_BYTES = 128
PATH_BYTES = 240
LEVELS = 16
# A view may add its note after the cut.
NOTE_CHARS = 400


def path_of(size: int) -> str:
    """Return a path of exactly `size` bytes, in names of legal length."""
    path = "/memories"
    while len(path) < size:
        path += "/" + "p" * min(100, size - len(path) - 1)
    return path


def test_a_file_of_the_limit_is_kept_and_one_byte_more_is_refused(do: Do, refused: Refused) -> None:
    do("create", path="/memories/full", file_text="x" * FILE_BYTES)
    error = refused("create", path="/memories/over", file_text="x" * (FILE_BYTES + 1))
    assert error.code == "too_large"
    assert str(FILE_BYTES) in str(error)
    assert do("view", path="/memories").endswith("\n32K\t/memories\n32K\t/memories/full")


def test_the_limit_counts_bytes_and_not_characters(do: Do, refused: Refused) -> None:
    do("create", path="/memories/full", file_text="é" * (FILE_BYTES // 2))
    assert (
        refused("create", path="/memories/over", file_text="é" * (FILE_BYTES // 2) + "x").code == "too_large"
    )


def test_an_edit_that_would_pass_the_limit_is_refused_and_changes_nothing(do: Do, refused: Refused) -> None:
    text = "a" + "x" * (FILE_BYTES - 2) + "\n"
    do("create", path="/memories/full", file_text=text)
    edits = [
        refused("str_replace", path="/memories/full", old_str="a", new_str="bb"),
        refused("insert", path="/memories/full", insert_line=0, insert_text=""),
    ]
    assert [error.code for error in edits] == ["too_large", "too_large"]
    do("str_replace", path="/memories/full", old_str="a", new_str="b")
    assert do("view", path="/memories").endswith("\n32K\t/memories\n32K\t/memories/full")


def test_max_file_bytes_lowers_the_limit(either: Connect) -> None:
    memory = either(max_file_bytes=10)
    memory.call({"command": "create", "path": "/memories/ten", "file_text": "x" * 10})
    with pytest.raises(WarmToolError) as caught:
        memory.call({"command": "create", "path": "/memories/eleven", "file_text": "x" * 11})
    assert caught.value.code == "too_large"
    assert "10" in str(caught.value)


def test_max_file_bytes_cannot_raise_the_limit(either: Connect) -> None:
    memory = either(max_file_bytes=10 * FILE_BYTES)
    with pytest.raises(WarmToolError) as caught:
        memory.call({"command": "create", "path": "/memories/f", "file_text": "x" * (FILE_BYTES + 1)})
    assert caught.value.code == "too_large"


def test_the_server_can_be_started_with_a_higher_limit(either: Connect) -> None:
    memory = either("--max-text-bytes", str(4 * FILE_BYTES))
    memory.call({"command": "create", "path": "/memories/f", "file_text": "x" * (4 * FILE_BYTES)})
    with pytest.raises(WarmToolError) as caught:
        memory.call({"command": "create", "path": "/memories/g", "file_text": "x" * (4 * FILE_BYTES + 1)})
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("letter", ["n", "é"])
def test_a_name_of_the_limit_is_kept_and_one_more_is_refused(do: Do, refused: Refused, letter: str) -> None:
    name = letter * (NAME_BYTES // len(letter.encode()))
    do("create", path=f"/memories/{name}", file_text="x")
    assert str(refused("create", path=f"/memories/{name}{letter}", file_text="x")).startswith("Invalid path")


def test_a_path_of_the_limit_is_kept_and_one_more_is_refused(do: Do, refused: Refused) -> None:
    fits, over = path_of(PATH_BYTES), path_of(PATH_BYTES + 1)
    assert (len(fits), len(over)) == (PATH_BYTES, PATH_BYTES + 1)
    do("create", path=fits, file_text="x")
    assert do("view", path=fits) == numbered(fits, "x")
    assert str(refused("create", path=over, file_text="x")).startswith("Invalid path")


def test_levels_up_to_the_limit_are_kept_and_one_more_is_refused(do: Do, refused: Refused) -> None:
    fits = "/memories" + "/d" * LEVELS
    do("create", path=fits, file_text="x")
    assert do("view", path=fits) == numbered(fits, "x")
    assert str(refused("create", path=f"{fits}/d", file_text="x")).startswith("Invalid path")


def test_a_rename_that_would_pass_a_limit_below_is_refused_and_changes_nothing(
    do: Do, refused: Refused
) -> None:
    do("create", path="/memories/a" + "/d" * (LEVELS - 1), file_text="x")
    before = do("view", path="/memories")
    error = refused("rename", old_path="/memories/a", new_path="/memories/b/a")
    assert error.code in ("invalid_argument", "too_large")
    assert do("view", path="/memories") == before


def view_pages(memory: WarmMemoryToolSync, path: str, limit: int) -> list[str]:
    """View a file to its end, page by page as the notes say; return the texts of the pages."""
    pages: list[str] = []
    view_range: list[int] | None = None
    seen: set[int] = set()
    while True:
        command: dict[str, object] = {"command": "view", "path": path}
        if view_range is not None:
            command["view_range"] = view_range
        page = memory.call(command)
        assert len(page) <= limit + NOTE_CHARS
        note = re.search(r"\n+\[[^\t\n]*view_range \[(\d+), -1\][^\t\n]*\Z", page)
        if note is None:
            return [*pages, page]
        pages.append(page[: note.start()])
        line = int(note[1])
        assert line not in seen, f"the note sends back to line {line}"
        seen.add(line)
        view_range = [line, -1]


def test_a_view_of_the_limit_is_whole(either: Connect) -> None:
    memory = either()
    lines = ["x" * 93] * 150
    memory.call({"command": "create", "path": "/memories/f", "file_text": "\n".join(lines)})
    whole = numbered("/memories/f", *lines)
    memory.close()
    limited = either(max_view_chars=len(whole))
    assert limited.call({"command": "view", "path": "/memories/f"}) == whole


@pytest.mark.parametrize("limit", [VIEW_CHARS, 1000])
def test_a_long_view_is_cut_at_lines_and_its_notes_lead_to_the_end(either: Connect, limit: int) -> None:
    memory = either(max_view_chars=limit)
    lines = [f"{number}:{'x' * (number % 50)}" for number in range(1, 1001)]
    memory.call({"command": "create", "path": "/memories/long", "file_text": "\n".join(lines) + "\n"})
    pages = view_pages(memory, "/memories/long", limit)
    assert len(pages) > 1
    shown: list[str] = []
    for page in pages:
        header, *body = page.split("\n")
        assert header == "Here's the content of /memories/long with line numbers:"
        shown += body
    assert shown == [f"{number:6}\t{line}" for number, line in enumerate(lines, start=1)]


def test_max_view_chars_cannot_raise_the_limit(either: Connect) -> None:
    memory = either(max_view_chars=10 * VIEW_CHARS)
    memory.call({"command": "create", "path": "/memories/f", "file_text": "line\n" * 6000})
    assert len(memory.call({"command": "view", "path": "/memories/f"})) <= VIEW_CHARS + NOTE_CHARS


def test_a_line_longer_than_the_limit_is_cut_between_characters_and_paging_goes_on(either: Connect) -> None:
    memory = either(max_view_chars=1000)
    lines = ["before", "é🚀" * 3000, "after"]
    memory.call({"command": "create", "path": "/memories/f", "file_text": "\n".join(lines)})
    pages = view_pages(memory, "/memories/f", 1000)
    shown = "\n".join(pages)
    assert "     1\tbefore" in shown
    assert "     2\té🚀é🚀" in shown
    assert "     3\tafter" in shown
    assert "\ufffd" not in shown


def test_a_directory_view_of_many_files_stays_bounded(either: Connect) -> None:
    memory = either(max_view_chars=2000)
    for number in range(200):
        memory.call({"command": "create", "path": f"/memories/file-{number:04}.md", "file_text": "x"})
    shown = memory.call({"command": "view", "path": "/memories"})
    assert len(shown) <= 2000 + NOTE_CHARS
    assert shown.startswith(EMPTY.partition("\n")[0])
