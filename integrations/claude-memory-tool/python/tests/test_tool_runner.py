"""The SDK's tool runner, end to end: a scripted model on one side, a real server on the other."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from conftest import Connect
from listing import EMPTY, listing, numbered, snippet
from scripted_endpoint import Block, ScriptedEndpoint, say, use
from warm_memory_tool import WarmMemoryTool, WarmMemoryToolSync
from warm_process import is_running, server_of, wait_until

NOTES = "/memories/customers/acme.md"

TURNS: list[list[Block]] = [
    use(("memory", {"command": "view", "path": "/memories"})),
    use(("memory", {"command": "create", "path": NOTES, "file_text": "# Acme\nprefers phone\n"})),
    use(
        (
            "memory",
            {"command": "str_replace", "path": NOTES, "old_str": "phone", "new_str": "email follow-ups"},
        )
    ),
    use(("memory", {"command": "insert", "path": NOTES, "insert_line": 2, "insert_text": "met in May"})),
    use(("memory_recall", {"query": "how does Acme like follow-ups?", "k": 1})),
    use(("memory", {"command": "view", "path": "/memories/../etc/passwd"})),
    use(
        ("memory", {"command": "create", "path": NOTES, "file_text": "again"}),
        ("memory", {"command": "rename", "old_path": NOTES, "new_path": "/memories/acme.md"}),
    ),
    use(("memory", {"command": "delete", "path": "/memories/acme.md"}), ("memory_recall", {"query": "Acme"})),
    say("done"),
]


def check_results(endpoint: ScriptedEndpoint) -> None:
    """Check what the runner sent back, call by call."""
    results = endpoint.tool_results()
    recalled = str(results[4]["content"])
    assert recalled.startswith(f"Found 1 matching memory file, most relevant first:\n\n1. {NOTES} (score ")
    assert "prefers email follow-ups" in recalled
    assert [(result.get("is_error", False), result["content"]) for result in results] == [
        (False, EMPTY),
        (False, f"File created successfully at: {NOTES}"),
        (False, snippet("# Acme", "prefers email follow-ups", "")),
        (False, f"The file {NOTES} has been edited."),
        (False, recalled),
        (True, "Path /memories/../etc/passwd would escape /memories directory"),
        (True, f"File {NOTES} already exists"),
        (False, f"Successfully renamed {NOTES} to /memories/acme.md"),
        (False, "Successfully deleted /memories/acme.md"),
        (
            False,
            "No memory file matches: Acme\nTry other words, or view /memories to see which files there are.",
        ),
    ]


def check_definitions(endpoint: ScriptedEndpoint) -> None:
    """Check the tools that the runner offered to the model: at first, and whenever it repeats them."""
    offers = [request["tools"] for request in endpoint.requests if "tools" in request]
    assert offers[0] == endpoint.requests[0]["tools"]
    for memory, recall in offers:
        assert memory == {"type": "memory_20250818", "name": "memory"}
        assert recall["name"] == "memory_recall"
        assert recall["description"]
        assert set(recall["input_schema"]["properties"]) == {"query", "k"}


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def run_sync(endpoint: ScriptedEndpoint, memory: WarmMemoryToolSync) -> Any:  # noqa: ANN401
    client = Anthropic(api_key="none", base_url=endpoint.url, max_retries=0)
    with client:
        return client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=1024,
            messages=[{"role": "user", "content": "Remember that Acme Corp prefers email follow-ups."}],
            tools=[memory, memory.recall_tool()],
        ).until_done()


async def run_async(endpoint: ScriptedEndpoint, memory: WarmMemoryTool) -> Any:  # noqa: ANN401
    client = AsyncAnthropic(api_key="none", base_url=endpoint.url, max_retries=0)
    async with client:
        return await client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=1024,
            messages=[{"role": "user", "content": "Remember that Acme Corp prefers email follow-ups."}],
            tools=[memory, memory.recall_tool()],
        ).until_done()


def test_the_sync_runner_creates_edits_recalls_and_is_refused_a_traversal(memory: WarmMemoryToolSync) -> None:
    with ScriptedEndpoint(*TURNS) as endpoint:
        final = run_sync(endpoint, memory)
    assert final.content[0].text == "done"
    check_results(endpoint)
    check_definitions(endpoint)


async def test_the_async_runner_creates_edits_recalls_and_is_refused_a_traversal(
    binary: str, data_dir: Path
) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        with ScriptedEndpoint(*TURNS) as endpoint:
            final = await run_async(endpoint, memory)
    assert final.content[0].text == "done"
    check_results(endpoint)
    check_definitions(endpoint)


async def test_the_sync_runner_works_where_an_event_loop_runs(connect: Connect) -> None:
    memory = connect()
    with ScriptedEndpoint(*TURNS) as endpoint:
        assert run_sync(endpoint, memory).content[0].text == "done"
    check_results(endpoint)
    await asyncio.sleep(0)


def test_what_one_conversation_wrote_the_next_one_reads(connect: Connect) -> None:
    first = connect()
    write = use(("memory", {"command": "create", "path": NOTES, "file_text": "prefers email\n"}))
    with ScriptedEndpoint(write, say("noted")) as endpoint:
        run_sync(endpoint, first)
    first.close()
    second = connect()
    read = use(
        ("memory", {"command": "view", "path": "/memories"}), ("memory", {"command": "view", "path": NOTES})
    )
    with ScriptedEndpoint(read, say("email it is")) as endpoint:
        run_sync(endpoint, second)
    assert [result["content"] for result in endpoint.tool_results()] == [
        listing("/memories", (14, "/memories"), (14, "/memories/customers/"), (14, NOTES)),
        numbered(NOTES, "prefers email"),
    ]


def test_input_that_no_command_fits_is_an_error_for_the_model_and_the_run_goes_on(
    memory: WarmMemoryToolSync,
) -> None:
    turns = [
        use(("memory", {"command": "append", "path": NOTES})),
        use(("memory", {"path": NOTES})),
        use(("memory", {"command": "create", "path": NOTES})),
        use(("memory_recall", {"k": 3})),
        use(("memory", {"command": "create", "path": NOTES, "file_text": "fine", "comment": "ignored"})),
        say("done"),
    ]
    with ScriptedEndpoint(*turns) as endpoint:
        assert run_sync(endpoint, memory).content[0].text == "done"
    assert [result.get("is_error", False) for result in endpoint.tool_results()] == [True] * 4 + [False]


def test_a_server_that_dies_during_a_run_is_an_error_for_the_model(connect: Connect) -> None:
    tools: list[WarmMemoryToolSync] = []
    pid = server_of(lambda: tools.append(connect()))
    memory = tools[0]
    memory.call({"command": "create", "path": NOTES, "file_text": "x"})
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid), 5)
    with ScriptedEndpoint(use(("memory", {"command": "view", "path": NOTES})), say("a pity")) as endpoint:
        assert run_sync(endpoint, memory).content[0].text == "a pity"
    (result,) = endpoint.tool_results()
    assert result["is_error"] is True
    assert "has stopped. Connect again" in result["content"]
