"""The server as a process: pipelining, oversized messages, clean output, clean ends."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from warm_process import RawServer, find_binary, is_running, pipelined, text_of, wait_until

GONE_SECONDS = 5.0


def mixed_requests(seed: int, count: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Return memory commands on a handful of files, so that each depends on those before it."""
    chance = random.Random(seed)
    commands: list[tuple[str, Mapping[str, Any]]] = []
    for number in range(count):
        path = f"/memories/{chance.choice('abc')}"
        match chance.choice(["create", "create", "insert", "insert", "str_replace", "delete", "rename"]):
            case "create":
                fields: dict[str, Any] = {"path": path, "file_text": f"start {number}\n"}
                name = "create"
            case "insert":
                fields = {"path": path, "insert_line": chance.randint(0, 2), "insert_text": f"line {number}"}
                name = "insert"
            case "str_replace":
                fields = {"path": path, "old_str": "line", "new_str": f"changed {number}"}
                name = "str_replace"
            case "delete":
                fields, name = {"path": path}, "delete"
            case _:
                fields = {"old_path": path, "new_path": f"/memories/{chance.choice('abc')}"}
                name = "rename"
        commands.append(("memory", {"command": name, **fields}))
    return commands


def tree_of(server: RawServer) -> dict[str, str]:
    """Return every file and its text."""
    keys = [memory["key"] for memory in server.ask("list", {"limit": 200})["memories"]]
    return {key: server.ask("get", {"key": key})["text"] for key in keys}


@pytest.mark.parametrize("seed", range(5))
def test_requests_sent_without_waiting_do_what_one_after_another_does(tmp_path: Path, seed: int) -> None:
    requests = mixed_requests(seed, 50)
    with RawServer(tmp_path / "serial") as serial:
        expected = [text_of(serial.call(tool, arguments)) for tool, arguments in requests]
        expected_tree = tree_of(serial)
    with RawServer(tmp_path / "pipelined") as server:
        assert [text_of(result) for result in pipelined(server, requests)] == expected
        assert tree_of(server) == expected_tree
    with RawServer(tmp_path / "pipelined") as restarted:
        assert tree_of(restarted) == expected_tree


def test_requests_still_in_the_pipe_at_its_end_are_done(data_dir: Path) -> None:
    server = RawServer(data_dir)
    server.initialize()
    for number in range(50):
        server.post_call("memory", {"command": "create", "path": f"/memories/{number}", "file_text": "x"})
    assert server.stop() == 0
    with RawServer(data_dir) as again:
        assert len(tree_of(again)) == 50


@pytest.mark.parametrize("megabytes", [1, 8, 32])
def test_an_oversized_request_is_refused_and_the_next_ping_answers(raw: RawServer, megabytes: int) -> None:
    text = "x" * (megabytes * 1024 * 1024)
    request = raw.post_call("memory", {"command": "create", "path": "/memories/big", "file_text": text})
    message = raw.reply(request)
    assert "error" in message or message["result"]["isError"], "it was accepted"
    assert raw.request("ping") == {}
    assert raw.ask("list", {})["total"] == 0


def test_an_oversized_reply_is_bounded_and_the_next_ping_answers(data_dir: Path) -> None:
    with RawServer(data_dir, "--max-text-bytes", str(8 * 1024 * 1024)) as server:
        text = "0123456789abcde\n" * (256 * 1024)
        server.memory("create", path="/memories/big", file_text=text)
        assert len(server.memory("view", path="/memories/big")) < 20_000
        request = server.post_call("get", {"key": "/memories/big"})
        message = server.reply(request)
        result = message.get("result", {})
        assert "error" in message or result.get("isError") or result["structuredContent"]["text"] == text
        assert server.request("ping") == {}


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":9000,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":9001,"method":"tools/call","params":{"name":"nope"}}',
        b'{"jsonrpc":"2.0","id":9002,"method":"tools/call","params":{"name":"memory","arguments":[]}}',
        b"",
        b"[" * 10_000,
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
def test_a_line_that_is_no_request_does_not_end_the_session(raw: RawServer, line: bytes) -> None:
    raw.send_line(line)
    assert raw.request("ping") == {}
    assert raw.memory("create", path="/memories/f", file_text="x").startswith("File created")


def test_an_unknown_field_is_refused_by_name(raw: RawServer) -> None:
    result = raw.call(
        "memory", {"command": "create", "path": "/memories/f", "file_text": "x", "colour": "red"}
    )
    assert result["isError"]
    assert result["structuredContent"]["code"] == "invalid_argument"
    assert "colour" in text_of(result)
    assert raw.ask("list", {})["total"] == 0


def test_a_memory_result_carries_its_text_and_nothing_else(raw: RawServer) -> None:
    result = raw.call("memory", {"command": "create", "path": "/memories/f", "file_text": "x"})
    assert [block["type"] for block in result["content"]] == ["text"]
    assert result["structuredContent"]["result"] == text_of(result)
    assert not result.get("isError")


def test_an_error_carries_its_message_as_text_and_its_code_beside(raw: RawServer) -> None:
    result = raw.call("memory", {"command": "view", "path": "/memories/none"})
    assert result["isError"] is True
    assert result["structuredContent"]["message"] == text_of(result)
    assert result["structuredContent"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("remember", {"text": "x", "key": "k"}), ("recall", {"query": "x"}), ("list", {}), ("stats", {})],
)
def test_other_tools_say_in_text_what_their_structured_content_says(
    raw: RawServer, tool: str, arguments: dict[str, Any]
) -> None:
    result = raw.call(tool, arguments)
    assert json.loads(text_of(result)) == result["structuredContent"]


def test_every_tool_is_annotated_and_documented(raw: RawServer) -> None:
    tools = {tool["name"]: tool for tool in raw.request("tools/list")["tools"]}
    assert {"memory", "remember", "recall", "get", "list", "forget", "stats"} <= set(tools)
    for tool in tools.values():
        assert tool["description"]
        assert isinstance(tool["annotations"]["readOnlyHint"], bool)
    assert tools["recall"]["annotations"]["readOnlyHint"] is True
    assert tools["forget"]["annotations"]["destructiveHint"] is True


@pytest.mark.parametrize("args", [(), ("--log", "trace")], ids=["RUST_LOG", "RUST_LOG and --log"])
def test_the_loudest_log_leaves_stdout_to_the_protocol(data_dir: Path, args: tuple[str, ...]) -> None:
    server = RawServer(data_dir, *args, env={"RUST_LOG": "trace", "RUST_BACKTRACE": "full"})
    server.initialize()
    server.memory("create", path="/memories/f", file_text="a word that no log may hold: zyzzyva")
    server.memory("view", path="/memories/none")
    server.ask("recall", {"query": "zyzzyva"})
    server.send_line(b"not json")
    server.request("ping")
    assert server.stop() == 0
    assert len(server.stdout_lines) >= 5
    for line in server.stdout_lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert line.endswith(b"\n")
    assert "zyzzyva" not in server.last_words()


@pytest.mark.parametrize("end", ["stdin", "sigterm"])
def test_no_process_is_left_after_twenty_starts_and_stops(tmp_path: Path, end: str) -> None:
    pids = []
    for number in range(20):
        server = RawServer(tmp_path / "store")
        pids.append(server.process.pid)
        server.initialize()
        server.memory("create", path=f"/memories/{number}", file_text="x")
        assert (server.stop() if end == "stdin" else server.terminate()) == 0
        server.stop()
    assert wait_until(lambda: not any(map(is_running, pids)), GONE_SECONDS)
    with RawServer(tmp_path / "store") as server:
        assert server.ask("stats", {})["memories"] == 20


PARENT = """
import subprocess, sys
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
server = subprocess.Popen(sys.argv[1:], **pipes)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
                   b'"capabilities":{},"clientInfo":{"name":"parent","version":"0"}}}\\n')
server.stdin.flush()
assert server.stdout.readline()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_no_process_is_left_when_its_parent_is_killed(tmp_path: Path) -> None:
    pids = []
    for _ in range(20):
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, find_binary(), "--data-dir", tmp_path / "store"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with parent:
            assert parent.stdout is not None
            pids.append(int(parent.stdout.readline()))
            parent.kill()
    assert wait_until(lambda: not any(map(is_running, pids)), GONE_SECONDS)


def test_sigterm_ends_a_server_that_nobody_spoke_to(data_dir: Path) -> None:
    server = RawServer(data_dir)
    assert wait_until(data_dir.exists, 10)
    assert wait_until(lambda: (data_dir / "identity.txt").exists(), 10)
    server.terminate()
    server.stop()
    assert not is_running(server.process.pid)
