"""Recall: what is found, in which order, and what an excerpt may be."""

from __future__ import annotations

import itertools
import random

import pytest

from conftest import Connect, Do
from warm_memory_tool import WarmMemoryToolSync, WarmToolError
from warm_process import RawServer, pipelined, text_of

SCRIPTS = {
    "cjk": "東京の港から出る船は正午に出発します。",
    "curly quotes": "\u201cquoted\u201d \u2018words\u2019 and an em\u2014dash \u2026 ",
    "cyrillic": "Паром отходит от причала ровно в полдень. ",
    "combining marks": "e\u0301a\u0308o\u0302\u0323 n\u0303 ",
    "zwj emoji": "👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇪🇺 ",
}


def test_recall_finds_the_files_and_says_where(do: Do, memory: WarmMemoryToolSync) -> None:
    do("create", path="/memories/people/acme.md", file_text="# Acme\n\nAcme Corp prefers email follow-ups.\n")
    do("create", path="/memories/people/globex.md", file_text="# Globex\n\nGlobex wants phone calls.\n")
    results = memory.recall("how does Acme like follow-ups")
    assert [hit.path for hit in results] == ["/memories/people/acme.md"]
    hit = results[0]
    assert hit.key == hit.path
    assert hit.score > 0
    assert "Acme Corp prefers email" in hit.excerpt
    assert 1 <= hit.lines[0] <= 3 <= hit.lines[1]
    assert (results.mode, results.total, results.truncated) == ("lexical", 1, False)


def test_recall_returns_the_k_best_and_says_how_many_there_were(do: Do, memory: WarmMemoryToolSync) -> None:
    for number in range(8):
        do("create", path=f"/memories/{number}", file_text="ferry " * (number + 1) + "boat " * (8 - number))
    results = memory.recall("ferry", k=3)
    assert len(results) == 3
    assert (results.total, results.truncated) == (8, True)
    scores = [hit.score for hit in results]
    assert scores == sorted(scores, reverse=True)
    assert len(memory.recall("ferry")) == 5


def test_recall_covers_only_memory_files(data_dir: object, raw: RawServer) -> None:
    raw.ask("remember", {"key": "note", "text": "the ferry leaves at noon"})
    raw.memory("create", path="/memories/f", file_text="the ferry leaves at dusk")
    under = raw.ask("recall", {"query": "ferry", "under": "/memories"})
    assert [hit["key"] for hit in under["results"]] == ["/memories/f"]
    everywhere = raw.ask("recall", {"query": "ferry"})
    assert {hit["key"] for hit in everywhere["results"]} == {"/memories/f", "note"}


def test_a_write_is_found_by_the_next_recall_and_what_it_replaced_is_not(
    do: Do, memory: WarmMemoryToolSync
) -> None:
    do("create", path="/memories/f", file_text="the ferry leaves at noon")
    assert len(memory.recall("noon")) == 1
    do("str_replace", path="/memories/f", old_str="noon", new_str="dusk")
    assert (len(memory.recall("noon")), len(memory.recall("dusk"))) == (0, 1)
    do("rename", old_path="/memories/f", new_path="/memories/g")
    assert [hit.path for hit in memory.recall("dusk")] == ["/memories/g"]
    do("delete", path="/memories/g")
    assert len(memory.recall("dusk")) == 0


def test_recall_finds_a_passage_deep_in_a_long_file(do: Do, memory: WarmMemoryToolSync) -> None:
    lines = [f"line {number} speaks of ordinary weather and nothing else" for number in range(1, 401)]
    lines[299] = "here the treasure is buried under the lighthouse"
    do("create", path="/memories/long", file_text="\n".join(lines))
    hit = memory.recall("treasure lighthouse")[0]
    assert hit.lines[0] <= 300 <= hit.lines[1]
    assert hit.lines[1] - hit.lines[0] < 100
    assert "treasure" in hit.excerpt


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Zoë naïvely ordered a crème brûlée", "creme brulee"),
        ("The RUNNERS were running", "runner"),
        ("we deploy on Fridays", "deployment friday"),
        ("東京の港から船が出る", "港"),
        ("서울에서 만나요", "서울"),
        ("我们在上海开会", "上海"),
        ("release v1.2.3 is out", "v1.2.3"),
        ("the link runs at 12 GB/s", "GB/s"),
        ("call fn parse_config_file first", "parse_config_file"),
    ],
)
def test_recall_matches_words_as_people_write_them(
    do: Do, memory: WarmMemoryToolSync, text: str, query: str
) -> None:
    do("create", path="/memories/wanted", file_text=text)
    do("create", path="/memories/other", file_text="something else entirely, about gardens")
    assert [hit.path for hit in memory.recall(query)] == ["/memories/wanted"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_excerpts_of_every_width_are_cut_between_characters(raw: RawServer, script: str) -> None:
    endless = "".join(itertools.islice(itertools.cycle(SCRIPTS[script]), 400))
    texts = {f"/memories/{width}": f"marker{width} {endless[:width]}" for width in range(1, 201)}
    texts |= {
        f"/memories/w{width}": f"{endless[:width]}{endless * 9} marker{width + 1000}"
        for width in range(1, 41)
    }
    created = pipelined(
        raw,
        [("memory", {"command": "create", "path": key, "file_text": text}) for key, text in texts.items()],
    )
    assert not any(result.get("isError") for result in created)
    for key, text in texts.items():
        word = next(word for word in text.split() if word.startswith("marker"))
        hits = raw.ask("recall", {"query": word, "k": 1})["results"]
        assert [hit["key"] for hit in hits] == [key]
        excerpt = hits[0]["excerpt"]
        assert excerpt
        assert excerpt.strip("…\n ") in text
        excerpt.encode("utf-8")


def test_long_tokens_that_differ_in_their_last_character_rank_their_own_first(
    do: Do, memory: WarmMemoryToolSync
) -> None:
    stem = "x" * 199
    for last in "ab":
        do("create", path=f"/memories/{last}", file_text=stem + last)
    for last in "ab":
        assert memory.recall(stem + last)[0].path == f"/memories/{last}"


def test_an_emoji_alone_finds_its_memory(do: Do, memory: WarmMemoryToolSync) -> None:
    do("create", path="/memories/rocket", file_text="deploy 🚀 friday")
    do("create", path="/memories/turtle", file_text="deploy 🐢 monday")
    assert [hit.path for hit in memory.recall("🚀")] == ["/memories/rocket"]
    assert [hit.path for hit in memory.recall("🐢")] == ["/memories/turtle"]


def test_a_unit_ranks_above_its_lookalike(do: Do, memory: WarmMemoryToolSync) -> None:
    do("create", path="/memories/link", file_text="link runs at 12 GB/s")
    do("create", path="/memories/logs", file_text="GBs of old logs")
    assert memory.recall("GB/s")[0].path == "/memories/link"


@pytest.mark.parametrize(
    "query",
    [
        "🐙",
        "🐙🐙🐙 👩‍👩‍👧‍👦",
        "!!!",
        "?",
        "…—“”",
        '"',
        "'",
        '"unclosed',
        "a AND (",
        "NOT",
        "title:x OR -y",
        "field:[a TO b]",
        "a~2^3",
        "*",
        "/re.*/",
        "\\",
        "{}",
        "\u0000",
        "\u200d",
        "\u0301",
        "x" * 5000,
        "SELECT * FROM x; --",
    ],
)
def test_no_query_is_a_syntax_error(do: Do, memory: WarmMemoryToolSync, query: str) -> None:
    do("create", path="/memories/f", file_text="some ordinary words")
    assert len(memory.recall(query)) <= 1


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_finds_nothing_or_is_refused_as_such(memory: WarmMemoryToolSync, query: str) -> None:
    try:
        results = memory.recall(query)
    except WarmToolError as error:
        assert error.code == "invalid_argument"
        assert "query" in str(error)
    else:
        assert len(results) == 0


def test_random_queries_never_fail(do: Do, memory: WarmMemoryToolSync) -> None:
    do("create", path="/memories/f", file_text="".join(SCRIPTS.values()))
    chance = random.Random(20)
    for _ in range(100):
        points = (
            chance.choice([chance.randrange(0x20, 0xD800), chance.randrange(0xE000, 0x110000)])
            for _ in range(20)
        )
        memory.recall("".join(map(chr, points)))


@pytest.mark.parametrize("k", [0, -1, 51])
def test_k_out_of_range_is_an_invalid_argument(memory: WarmMemoryToolSync, k: int) -> None:
    with pytest.raises(WarmToolError) as caught:
        memory.recall("x", k=k)
    assert caught.value.code == "invalid_argument"


@pytest.mark.parametrize("mode", ["semantic", "hybrid", "psychic"])
def test_a_mode_that_the_server_lacks_is_an_invalid_argument(raw: RawServer, mode: str) -> None:
    result = raw.call("recall", {"query": "x", "mode": mode})
    assert result["isError"]
    assert result["structuredContent"]["code"] == "invalid_argument"
    assert "mode" in text_of(result) or mode in text_of(result)


def test_under_is_a_folder_and_not_a_beginning_of_a_name(raw: RawServer) -> None:
    for path in ("/memories/a/x", "/memories/ab/y", "/memories/a.txt"):
        raw.memory("create", path=path, file_text="ferry")
    hits = raw.ask("recall", {"query": "ferry", "under": "/memories/a"})["results"]
    assert [hit["key"] for hit in hits] == ["/memories/a/x"]
    exact = raw.ask("recall", {"query": "ferry", "under": "/memories/a.txt"})["results"]
    assert [hit["key"] for hit in exact] == ["/memories/a.txt"]


def test_tags_and_min_score_narrow_a_recall(raw: RawServer) -> None:
    raw.ask("remember", {"key": "a", "text": "ferry", "tags": ["boats", "noon"]})
    raw.ask("remember", {"key": "b", "text": "ferry", "tags": ["boats"]})
    hits = raw.ask("recall", {"query": "ferry", "tags": ["boats", "noon"]})["results"]
    assert [hit["key"] for hit in hits] == ["a"]
    assert hits[0]["tags"] == ["boats", "noon"]
    assert raw.ask("recall", {"query": "ferry", "min_score": 1000})["results"] == []


def test_the_index_survives_restarts(connect: Connect) -> None:
    for number in range(3):
        memory = connect()
        memory.call(
            {"command": "create", "path": f"/memories/{number}", "file_text": f"ferry number{number}"}
        )
        assert len(memory.recall("ferry")) == number + 1
        assert memory.recall(f"number{number}")[0].path == f"/memories/{number}"
        memory.close()


def test_the_recall_tool_tells_a_model_what_was_found(do: Do, memory: WarmMemoryToolSync) -> None:
    do("create", path="/memories/acme.md", file_text="intro\nAcme Corp prefers email\n")
    tool = memory.recall_tool()
    assert tool.name == "memory_recall"
    schema = tool.to_dict()["input_schema"]
    assert schema["required"] == ["query"]
    told = str(tool.call({"query": "acme email"}))
    assert told.startswith(
        "Found 1 matching memory file, most relevant first:\n\n1. /memories/acme.md (score "
    )
    assert "lines 1-2)" in told
    assert "   Acme Corp prefers email" in told
    for number in range(3):
        do("create", path=f"/memories/{number}", file_text="Acme")
    assert str(tool.call({"query": "acme", "k": 2})).startswith("Found 2 of 4 matching memory files")


def test_the_recall_tool_says_when_nothing_was_found(memory: WarmMemoryToolSync) -> None:
    assert memory.recall_tool().call({"query": "acme"}) == (
        "No memory file matches: acme\nTry other words, or view /memories to see which files there are."
    )
