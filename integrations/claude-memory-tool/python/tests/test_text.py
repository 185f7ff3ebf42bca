"""Texts come back byte for byte, whatever they hold and whatever the locale."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Do, Refused
from listing import numbered, snippet
from warm_process import RawServer

TEXTS = {
    "crlf": "one\r\ntwo\r\n",
    "lone carriage returns": "one\rtwo\rthree",
    "mixed line ends": "one\r\ntwo\nthree\r",
    "other line separators": "a\u2028b\u2029c\u0085d\x0be\x0cf",
    "control characters": "nul\x00 bell\x07 escape\x1b[31m del\x7f",
    "byte order mark": "\ufefftext",
    "scripts": "日本語 한국어 Ελληνικά العربية עברית ไทย",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇪🇺",
    "composed and decomposed": "caf\u00e9 cafe\u0301 \ufb01 \u2126",
    "noncharacters": "\ufffe \uffff \U0010ffff",
    "json and escapes": '{"a": "\\u0041\\n", "b": \'x\'}',
    "blank": " \t\n \n\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_comes_back_byte_for_byte(raw: RawServer, text: str) -> None:
    created = raw.memory("create", path="/memories/f", file_text=text)
    assert created == "File created successfully at: /memories/f"
    assert raw.ask("get", {"key": "/memories/f"})["text"] == text
    lines = text.split("\n")
    assert raw.memory("view", path="/memories/f") == numbered(
        "/memories/f", *(lines[:-1] if text.endswith("\n") else lines)
    )


def test_edits_keep_crlf_elsewhere(raw: RawServer) -> None:
    raw.memory("create", path="/memories/f", file_text="one\r\ntwo\r\nthree\r\n")
    raw.memory("str_replace", path="/memories/f", old_str="two", new_str="2")
    raw.memory("insert", path="/memories/f", insert_line=1, insert_text="new\r\n")
    assert raw.ask("get", {"key": "/memories/f"})["text"] == "one\r\nnew\r\n2\r\nthree\r\n"


def test_str_replace_matches_line_ends_exactly(do: Do, refused: Refused) -> None:
    do("create", path="/memories/f", file_text="one\r\ntwo\r\n")
    refused("str_replace", path="/memories/f", old_str="one\ntwo", new_str="x")
    assert do("str_replace", path="/memories/f", old_str="one\r\ntwo", new_str="x") == snippet("x\r", "")


def test_str_replace_does_not_fold_composed_and_decomposed_text(do: Do, refused: Refused) -> None:
    do("create", path="/memories/f", file_text="caf\u00e9")
    refused("str_replace", path="/memories/f", old_str="cafe\u0301", new_str="x")
    assert do("str_replace", path="/memories/f", old_str="caf\u00e9", new_str="x") == snippet("x")


@pytest.mark.parametrize("locale", ["C", "POSIX", "tr_TR.ISO-8859-9"])
def test_raw_utf8_passes_in_any_locale(data_dir: Path, locale: str) -> None:
    text = "naïve 日本語 🚀 cafe\u0301"
    path = "/memories/日本語 🚀.md"
    with RawServer(data_dir, env={"LC_ALL": locale, "LANG": locale}) as server:
        server.memory("create", path=path, file_text=text)
        reply = server.post_call("memory", {"command": "view", "path": path})
        shown = server.result(reply)["content"][0]["text"]
        assert shown.encode() == numbered(path, text).encode()
        assert server.stop() == 0


def test_half_a_surrogate_pair_is_refused_and_the_session_goes_on(do: Do, refused: Refused) -> None:
    error = refused("create", path="/memories/f", file_text="ok \ud83d")
    assert error.code == "invalid_argument"
    assert "file_text" in str(error)
    do("create", path="/memories/f", file_text="ok")
    assert do("view", path="/memories/f") == numbered("/memories/f", "ok")
