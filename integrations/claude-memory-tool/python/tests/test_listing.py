"""`list`, `remember`, `get` and `forget`: bounded replies, pages that visit each memory once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from listing import EMPTY, numbered
from warm_process import RawServer, pipelined, text_of

COUNT = 5000
# The stated size: a default reply of `list` or `recall` stays under it, protocol and all.
DEFAULT_REPLY_BYTES = 64 * 1024


def text_number(number: int) -> str:
    """Return a text of 2 KB that has one word of its own."""
    words = f"memory number{number} about the harbour, the weather and the ferry. "
    return (words * (2048 // len(words) + 1))[:2048]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """A server with 5,000 memories of 2 KB."""
    with RawServer(tmp_path_factory.mktemp("full") / "data") as server:
        for first in range(0, COUNT, 100):
            calls = [
                (
                    "remember",
                    {
                        "key": f"k{number:05}",
                        "text": text_number(number),
                        "tags": [("even", "odd")[number % 2]],
                    },
                )
                for number in range(first, first + 100)
            ]
            assert not any(result.get("isError") for result in pipelined(server, calls))
        yield server


def reply_size(server: RawServer, tool: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the structured content of a reply, and the size of the whole reply on the wire."""
    before = len(server.stdout_lines)
    content = server.ask(tool, arguments)
    return content, sum(map(len, server.stdout_lines[before:]))


def pages(server: RawServer, **arguments: object) -> Iterator[dict[str, Any]]:
    """Page through a list."""
    cursor: dict[str, object] = {}
    while True:
        page = server.ask("list", {**arguments, **cursor})
        yield page
        if "next_cursor" not in page:
            return
        cursor = {"cursor": page["next_cursor"]}


def test_a_default_list_is_bounded_and_says_that_it_is_cut(full: RawServer) -> None:
    content, size = reply_size(full, "list", {})
    assert size < DEFAULT_REPLY_BYTES
    assert content["total"] == COUNT
    assert content["returned"] == len(content["memories"]) < COUNT
    assert content["truncated"] is True
    assert "text" not in content["memories"][0]


def test_a_default_recall_is_bounded_and_says_that_it_is_cut(full: RawServer) -> None:
    content, size = reply_size(full, "recall", {"query": "the weather in the harbour"})
    assert size < DEFAULT_REPLY_BYTES
    assert content["total"] == COUNT
    assert content["returned"] == len(content["results"]) == 5
    assert content["truncated"] is True


@pytest.mark.parametrize("limit", [None, 1, 7, 200])
def test_paging_visits_each_memory_exactly_once_in_the_order_of_names(
    full: RawServer, limit: int | None
) -> None:
    prefix = "k000" if limit == 1 else "k"
    arguments: dict[str, object] = {"prefix": prefix} | ({"limit": limit} if limit else {})
    visited: list[str] = []
    for page in pages(full, **arguments):
        assert page["returned"] == len(page["memories"]) <= (limit or 200)
        assert page["truncated"] is ("next_cursor" in page)
        visited += [memory["key"] for memory in page["memories"]]
    assert visited == [f"k{number:05}" for number in range(100 if limit == 1 else COUNT)]


def test_a_memory_is_found_among_thousands_by_its_own_word(full: RawServer) -> None:
    content = full.ask("recall", {"query": "number4321", "k": 1})
    assert [hit["key"] for hit in content["results"]] == ["k04321"]


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 201}, {"limit": -1}, {"cursor": "nonsense!"}])
def test_a_limit_or_cursor_out_of_range_is_an_invalid_argument(
    full: RawServer, arguments: dict[str, Any]
) -> None:
    result = full.call("list", arguments)
    assert result["isError"]
    assert result["structuredContent"]["code"] == "invalid_argument"


def test_paging_goes_on_where_it_was_when_memories_come_and_go(raw: RawServer) -> None:
    for name in "bdfhj":
        raw.ask("remember", {"key": name, "text": "x"})
    page = raw.ask("list", {"limit": 2})
    assert [memory["key"] for memory in page["memories"]] == ["b", "d"]
    raw.ask("forget", {"key": "d"})
    raw.ask("remember", {"key": "a", "text": "x"})
    raw.ask("remember", {"key": "e", "text": "x"})
    rest = raw.ask("list", {"limit": 50, "cursor": page["next_cursor"]})
    assert [memory["key"] for memory in rest["memories"]] == ["e", "f", "h", "j"]


def test_remember_replaces_by_key_and_changes_the_version(raw: RawServer) -> None:
    first = raw.ask(
        "remember", {"key": "k", "text": "one", "title": "T", "tags": ["a"], "metadata": {"n": [1]}}
    )
    assert (first["key"], first["created"], first["bytes"]) == ("k", True, 3)
    got = raw.ask("get", {"key": "k"})
    assert (got["text"], got["title"], got["tags"], got["metadata"]) == ("one", "T", ["a"], {"n": [1]})
    second = raw.ask("remember", {"key": "k", "text": "seven"})
    assert (second["created"], second["bytes"]) == (False, 5)
    assert second["version"] != first["version"]
    assert raw.ask("get", {"key": "k"})["text"] == "seven"
    assert raw.ask("list", {})["total"] == 1


def test_remember_makes_up_a_key_when_there_is_none(raw: RawServer) -> None:
    keys = {raw.ask("remember", {"text": "same"})["key"] for _ in range(3)}
    assert len(keys) == 3
    assert all(keys)


def test_compare_and_set_refuses_a_version_that_is_not_current(raw: RawServer) -> None:
    version = raw.ask("remember", {"key": "k", "text": "one"})["version"]
    raw.ask("remember", {"key": "k", "text": "two", "if_version": version})
    stale = raw.call("remember", {"key": "k", "text": "three", "if_version": version})
    assert stale["structuredContent"]["code"] == "version_conflict"
    taken = raw.call("remember", {"key": "k", "text": "four", "create_only": True})
    assert taken["structuredContent"]["code"] == "already_exists"
    assert raw.ask("get", {"key": "k"})["text"] == "two"


def test_a_key_in_memories_is_a_file_of_the_tree_and_obeys_its_rules(raw: RawServer) -> None:
    raw.ask("remember", {"key": "/memories/f", "text": "from remember"})
    assert raw.memory("view", path="/memories/f") == numbered("/memories/f", "from remember")
    raw.memory("create", path="/memories/g", file_text="from create")
    assert raw.ask("get", {"key": "/memories/g"})["text"] == "from create"
    for key in ("/memories/../x", "/memories/.h", "/memories", "/memories/f/under"):
        assert raw.call("remember", {"key": key, "text": "x"})["isError"]
    assert raw.ask("list", {"prefix": "/memories/"})["total"] == 2


def test_forget_takes_a_key_several_keys_or_a_confirmed_prefix(raw: RawServer) -> None:
    for key in ("a", "b", "c", "p1", "p2", "/memories/f"):
        raw.ask("remember", {"key": key, "text": "x"})
    assert raw.ask("forget", {"key": "a"})["forgotten"] == 1
    several = raw.ask("forget", {"keys": ["b", "c", "none"]})
    assert (several["forgotten"], several["missing"]) == (2, ["none"])
    unconfirmed = raw.call("forget", {"prefix": "p"})
    assert unconfirmed["structuredContent"]["code"] == "invalid_argument"
    assert raw.ask("list", {})["total"] == 3
    assert raw.ask("forget", {"prefix": "p", "confirm": True})["forgotten"] == 2
    assert raw.ask("forget", {"prefix": "/memories/", "confirm": True})["forgotten"] == 1
    assert raw.memory("view", path="/memories") == EMPTY
    assert raw.ask("recall", {"query": "x"})["results"] == []


def test_get_of_a_missing_key_is_not_found(raw: RawServer) -> None:
    result = raw.call("get", {"key": "none"})
    assert result["structuredContent"]["code"] == "not_found"
    assert "none" in text_of(result)


def test_stats_counts_and_survives_a_restart(data_dir: Path) -> None:
    with RawServer(data_dir) as server:
        server.ask("remember", {"key": "k", "text": "12345"})
        server.ask("remember", {"key": "/memories/f", "text": "678"})
    with RawServer(data_dir) as server:
        stats = server.ask("stats", {})
        assert (stats["memories"], stats["files"], stats["text_bytes"]) == (2, 1, 8)
        assert stats["limits"]["max_text_bytes"] == 32 * 1024
        assert stats["damaged_records"] == 0
