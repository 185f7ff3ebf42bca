"""Every command: what it does and the exact string it answers with."""

from __future__ import annotations

import pytest

from conftest import Do, Refused
from listing import EMPTY, listing, numbered, snippet
from warm_memory_tool import WarmMemoryToolSync

NOTES = "/memories/notes.md"


# view


def test_the_first_view_of_an_empty_store_succeeds(do: Do) -> None:
    assert do("view", path="/memories") == EMPTY


def test_view_of_a_directory_lists_two_levels_with_sizes_summed(do: Do) -> None:
    do("create", path="/memories/b.txt", file_text="x" * 5632)
    do("create", path="/memories/a/one.txt", file_text="12345")
    do("create", path="/memories/a/deep/two.txt", file_text="1" * 1024)
    do("create", path="/memories/a/deep/deeper/three.txt", file_text="123")
    assert do("view", path="/memories") == listing(
        "/memories",
        (5632 + 5 + 1024 + 3, "/memories"),
        (5 + 1024 + 3, "/memories/a/"),
        (1024 + 3, "/memories/a/deep/"),
        (5, "/memories/a/one.txt"),
        (5632, "/memories/b.txt"),
    )
    assert do("view", path="/memories/a") == listing(
        "/memories/a",
        (5 + 1024 + 3, "/memories/a"),
        (1024 + 3, "/memories/a/deep/"),
        (3, "/memories/a/deep/deeper/"),
        (1024, "/memories/a/deep/two.txt"),
        (5, "/memories/a/one.txt"),
    )


def test_view_of_a_directory_orders_entries_by_name_within_their_directory(do: Do) -> None:
    for name in ("a.txt", "a/z", "a-b", "B", "é"):
        do("create", path=f"/memories/{name}", file_text="1")
    shown = [line.split("\t")[1] for line in do("view", path="/memories").split("\n")[2:]]
    assert shown == [f"/memories/{name}" for name in ("B", "a/", "a/z", "a-b", "a.txt", "é")]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0B"), (1, "1B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (5632, "5.5K"), (32768, "32K")],
)
def test_view_of_a_directory_shows_human_sizes(do: Do, size: int, shown: str) -> None:
    do("create", path="/memories/f", file_text="x" * size)
    assert do("view", path="/memories").endswith(f"\n{shown}\t/memories\n{shown}\t/memories/f")


def test_view_of_a_directory_leaves_node_modules_out(do: Do) -> None:
    do("create", path="/memories/node_modules/x.js", file_text="1")
    do("create", path="/memories/kept.js", file_text="1")
    shown = do("view", path="/memories")
    assert "node_modules/" not in shown
    assert "/memories/kept.js" in shown


def test_view_of_a_file_numbers_lines_from_one_in_six_columns(do: Do) -> None:
    do("create", path=NOTES, file_text="first\n\n\tthird")
    assert do("view", path=NOTES) == (
        "Here's the content of /memories/notes.md with line numbers:\n"
        "     1\tfirst\n     2\t\n     3\t\tthird"
    )


def test_view_of_a_file_shows_no_line_after_a_trailing_newline(do: Do) -> None:
    do("create", path=NOTES, file_text="one\ntwo\n")
    assert do("view", path=NOTES) == numbered(NOTES, "one", "two")


def test_view_of_an_empty_file_is_its_header(do: Do) -> None:
    do("create", path=NOTES, file_text="")
    assert do("view", path=NOTES) == "Here's the content of /memories/notes.md with line numbers:\n"


@pytest.mark.parametrize(
    ("view_range", "first", "last"),
    [([1, 1], 1, 1), ([2, 3], 2, 3), ([3, -1], 3, 5), ([1, -1], 1, 5), ([4, 99], 4, 5), ([0, 2], 1, 2)],
)
def test_view_range_shows_the_lines_that_exist(do: Do, view_range: list[int], first: int, last: int) -> None:
    lines = ["one", "two", "three", "four", "five"]
    do("create", path=NOTES, file_text="\n".join(lines) + "\n")
    expected = numbered(NOTES, *lines[first - 1 : last], first=first)
    assert do("view", path=NOTES, view_range=view_range) == expected


@pytest.mark.parametrize("view_range", [[6, 9], [6, -1], [4, 2]])
def test_view_range_without_lines_shows_the_header_alone(do: Do, view_range: list[int]) -> None:
    do("create", path=NOTES, file_text="1\n2\n3\n4\n5\n")
    assert do("view", path=NOTES, view_range=view_range).rstrip("\n") == (
        "Here's the content of /memories/notes.md with line numbers:"
    )


def test_view_of_a_missing_path_is_refused(refused: Refused) -> None:
    error = refused("view", path=NOTES)
    assert str(error) == "The path /memories/notes.md does not exist. Please provide a valid path."
    assert error.code == "not_found"


# create


def test_create_answers_with_the_path(do: Do) -> None:
    assert do("create", path=NOTES, file_text="x") == "File created successfully at: /memories/notes.md"
    assert do("view", path=NOTES) == numbered(NOTES, "x")


def test_create_never_overwrites(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="old")
    error = refused("create", path=NOTES, file_text="new")
    assert str(error) == "File /memories/notes.md already exists"
    assert error.code == "already_exists"
    assert do("view", path=NOTES) == numbered(NOTES, "old")


@pytest.mark.parametrize("path", ["/memories", "/memories/dir", "/memories/dir/sub"])
def test_create_refuses_the_path_of_a_directory(do: Do, refused: Refused, path: str) -> None:
    do("create", path="/memories/dir/sub/f", file_text="x")
    assert str(refused("create", path=path, file_text="y")) == f"File {path} already exists"


@pytest.mark.parametrize("path", ["/memories/f/x", "/memories/f/x/y"])
def test_create_refuses_a_path_under_a_file(do: Do, refused: Refused, path: str) -> None:
    do("create", path="/memories/f", file_text="x")
    before = do("view", path="/memories")
    assert "/memories/f" in str(refused("create", path=path, file_text="y"))
    assert do("view", path="/memories") == before


# str_replace


def test_str_replace_answers_with_a_snippet_of_two_lines_around(do: Do) -> None:
    do("create", path=NOTES, file_text="1\n2\n3\nfour\n5\n6\n7\n")
    assert do("str_replace", path=NOTES, old_str="four", new_str="4") == snippet(
        "2", "3", "4", "5", "6", first=2
    )


def test_str_replace_at_the_end_shows_the_empty_last_line_in_the_snippet(do: Do) -> None:
    do("create", path=NOTES, file_text="one\ntwo\n")
    assert do("str_replace", path=NOTES, old_str="two", new_str="2") == snippet("one", "2", "")


def test_str_replace_without_new_str_deletes(do: Do) -> None:
    do("create", path=NOTES, file_text="keep drop keep")
    assert do("str_replace", path=NOTES, old_str=" drop") == snippet("keep keep")
    assert do("view", path=NOTES) == numbered(NOTES, "keep keep")


def test_str_replace_takes_the_new_text_literally(do: Do) -> None:
    do("create", path=NOTES, file_text="a.c abc")
    text = r"\1 $0 ${name} \g<0> % {} \n"
    do("str_replace", path=NOTES, old_str="a.c", new_str=text)
    assert do("view", path=NOTES) == numbered(NOTES, f"{text} abc")


def test_str_replace_of_absent_text_is_refused_and_changes_nothing(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="one\ntwo\n")
    error = refused("str_replace", path=NOTES, old_str="three", new_str="3")
    assert str(error) == (
        "No replacement was performed, old_str `three` did not appear verbatim in /memories/notes.md."
    )
    assert do("view", path=NOTES) == numbered(NOTES, "one", "two")


def test_str_replace_of_repeated_text_names_every_line_and_changes_nothing(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="same\nother\nsame\n")
    error = refused("str_replace", path=NOTES, old_str="same", new_str="x")
    assert str(error) == (
        "No replacement was performed. Multiple occurrences of old_str `same` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    assert error.code == "invalid_argument"
    assert do("view", path=NOTES) == numbered(NOTES, "same", "other", "same")


def test_str_replace_of_nothing_is_refused_and_changes_nothing(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="x")
    error = refused("str_replace", path=NOTES, old_str="", new_str="y")
    assert "old_str" in str(error)
    assert error.code == "invalid_argument"
    assert do("view", path=NOTES) == numbered(NOTES, "x")


@pytest.mark.parametrize(
    ("command", "fields"),
    [("str_replace", {"old_str": "a", "new_str": "b"}), ("insert", {"insert_line": 0, "insert_text": "x"})],
)
def test_edits_of_what_is_no_file_are_refused(
    do: Do, refused: Refused, command: str, fields: dict[str, object]
) -> None:
    do("create", path="/memories/dir/f", file_text="a")
    missing = refused(command, path="/memories/none", **fields)
    assert str(missing) == "The path /memories/none does not exist. Please provide a valid path."
    below = refused(command, path="/memories/dir/f/below", **fields)
    assert str(below) == "The path /memories/dir/f/below does not exist. Please provide a valid path."
    for path in ("/memories", "/memories/dir"):
        assert str(refused(command, path=path, **fields)) == f"The path {path} is not a file."


# insert


@pytest.mark.parametrize(
    ("line", "after"),
    [(0, ["new", "one", "two"]), (1, ["one", "new", "two"]), (2, ["one", "two", "new"])],
)
def test_insert_puts_the_text_after_the_line(do: Do, line: int, after: list[str]) -> None:
    do("create", path=NOTES, file_text="one\ntwo\n")
    answer = do("insert", path=NOTES, insert_line=line, insert_text="new\n")
    assert answer == "The file /memories/notes.md has been edited."
    assert do("view", path=NOTES) == numbered(NOTES, *after)


@pytest.mark.parametrize("line", [-1, 3, 10**12])
def test_insert_outside_the_file_names_the_range_and_changes_nothing(
    do: Do, refused: Refused, line: int
) -> None:
    do("create", path=NOTES, file_text="one\ntwo\n")
    error = refused("insert", path=NOTES, insert_line=line, insert_text="x")
    assert str(error) == (f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 2].")
    assert do("view", path=NOTES) == numbered(NOTES, "one", "two")


def test_insert_ends_the_file_with_a_newline(do: Do) -> None:
    do("create", path=NOTES, file_text="one")
    do("insert", path=NOTES, insert_line=1, insert_text="two")
    # The snippet of an edit shows the empty line after a final newline.
    assert do("str_replace", path=NOTES, old_str="one", new_str="1") == snippet("1", "two", "")


def test_insert_into_an_empty_file_makes_its_first_line(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="")
    assert str(refused("insert", path=NOTES, insert_line=1, insert_text="x")).endswith("the range [0, 0].")
    do("insert", path=NOTES, insert_line=0, insert_text="x")
    assert do("view", path=NOTES) == numbered(NOTES, "x")


# delete


def test_delete_takes_a_file(do: Do) -> None:
    do("create", path=NOTES, file_text="x")
    assert do("delete", path=NOTES) == "Successfully deleted /memories/notes.md"
    assert do("view", path="/memories") == EMPTY


def test_delete_takes_a_directory_with_everything_under_it_and_nothing_else(do: Do) -> None:
    for path in ("/memories/d/a", "/memories/d/e/b", "/memories/d.txt", "/memories/da/c"):
        do("create", path=path, file_text="x")
    assert do("delete", path="/memories/d") == "Successfully deleted /memories/d"
    assert do("view", path="/memories") == listing(
        "/memories", (2, "/memories"), (1, "/memories/d.txt"), (1, "/memories/da/"), (1, "/memories/da/c")
    )


def test_delete_of_the_root_is_refused(do: Do, refused: Refused) -> None:
    do("create", path=NOTES, file_text="x")
    assert str(refused("delete", path="/memories")) == "Cannot delete the /memories directory itself"
    assert do("view", path=NOTES) == numbered(NOTES, "x")


def test_delete_of_a_missing_path_is_refused(do: Do, refused: Refused) -> None:
    assert str(refused("delete", path=NOTES)) == "The path /memories/notes.md does not exist"
    do("create", path=NOTES, file_text="x")
    assert str(refused("delete", path=f"{NOTES}/x")) == "The path /memories/notes.md/x does not exist"


# rename


def test_rename_moves_a_file_and_makes_the_directories_it_needs(do: Do) -> None:
    do("create", path=NOTES, file_text="x\n")
    answer = do("rename", old_path=NOTES, new_path="/memories/a/b/c.md")
    assert answer == "Successfully renamed /memories/notes.md to /memories/a/b/c.md"
    assert do("view", path="/memories/a/b/c.md") == numbered("/memories/a/b/c.md", "x")
    assert "notes.md" not in do("view", path="/memories")


def test_rename_moves_a_whole_directory(do: Do) -> None:
    do("create", path="/memories/old/a", file_text="1")
    do("create", path="/memories/old/sub/b", file_text="22")
    do("create", path="/memories/older", file_text="333")
    assert do("rename", old_path="/memories/old", new_path="/memories/new") == (
        "Successfully renamed /memories/old to /memories/new"
    )
    assert do("view", path="/memories") == listing(
        "/memories",
        (6, "/memories"),
        (3, "/memories/new/"),
        (1, "/memories/new/a"),
        (2, "/memories/new/sub/"),
        (3, "/memories/older"),
    )
    assert do("view", path="/memories/new/sub/b") == numbered("/memories/new/sub/b", "22")


@pytest.mark.parametrize("target", ["/memories/there", "/memories/dir", "/memories", "/memories/from"])
def test_rename_onto_something_is_refused_and_changes_nothing(do: Do, refused: Refused, target: str) -> None:
    for path in ("/memories/from", "/memories/there", "/memories/dir/f"):
        do("create", path=path, file_text=path)
    before = do("view", path="/memories")
    error = refused("rename", old_path="/memories/from", new_path=target)
    assert str(error) == f"The destination {target} already exists"
    assert error.code == "already_exists"
    assert do("view", path="/memories") == before


def test_rename_of_the_root_is_refused(refused: Refused) -> None:
    assert str(refused("rename", old_path="/memories", new_path="/memories/x")) == (
        "Cannot rename the /memories directory itself"
    )


def test_rename_of_a_missing_path_is_refused(refused: Refused) -> None:
    error = refused("rename", old_path="/memories/none", new_path="/memories/x")
    assert str(error) == "The path /memories/none does not exist"
    assert error.code == "not_found"


@pytest.mark.parametrize("target", ["/memories/dir/sub", "/memories/dir/f/x"])
def test_rename_into_itself_or_under_a_file_is_refused_and_changes_nothing(
    do: Do, refused: Refused, target: str
) -> None:
    do("create", path="/memories/dir/f", file_text="x")
    do("create", path="/memories/other", file_text="x")
    before = do("view", path="/memories")
    assert refused("rename", old_path="/memories/dir", new_path=target).code == "invalid_argument"
    assert refused("rename", old_path="/memories/other", new_path="/memories/dir/f/x")
    assert do("view", path="/memories") == before


# what is not a command


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "create", "path": NOTES},
        {"command": "view"},
        {"command": "insert", "path": NOTES, "insert_text": "x"},
        {"command": "insert", "path": NOTES, "insert_line": "one", "insert_text": "x"},
        {"command": "view", "path": 3},
        {"command": "rename", "old_path": NOTES},
    ],
)
def test_a_missing_or_mistyped_field_is_an_invalid_argument(
    do: Do, refused: Refused, fields: dict[str, object]
) -> None:
    do("create", path=NOTES, file_text="x")
    error = refused(str(fields["command"]), **{name: fields[name] for name in fields if name != "command"})
    assert error.code == "invalid_argument"
    assert do("view", path=NOTES) == numbered(NOTES, "x")


def test_an_unknown_command_is_refused_with_the_list_of_commands(refused: Refused) -> None:
    error = refused("append", path=NOTES)
    assert error.code == "invalid_argument"
    assert str(error) == (
        "Unknown memory command: append. It must be one of view, create, str_replace, insert, delete, rename"
    )


def test_clear_all_memory_forgets_every_file(memory: WarmMemoryToolSync, do: Do) -> None:
    do("create", path=NOTES, file_text="x")
    do("create", path="/memories/a/b", file_text="x")
    assert memory.clear_all_memory() == "All memory cleared"
    assert do("view", path="/memories") == EMPTY
    assert memory.clear_all_memory() == "All memory cleared"
