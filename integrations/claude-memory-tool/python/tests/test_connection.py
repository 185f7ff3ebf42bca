"""The package around the server: start, threads, event loops, ends, and servers that die."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import BetaMemoryTool20250818CreateCommand, BetaMemoryTool20250818ViewCommand

from conftest import Connect
from listing import EMPTY, numbered
from warm_memory_tool import (
    WarmConnectionError,
    WarmMemoryTool,
    WarmMemoryToolSync,
    WarmToolError,
)
from warm_process import children, is_running, server_of, wait_until

VIEW = {"command": "view", "path": "/memories"}
GONE_SECONDS = 5.0
END_SECONDS = 60


# entry points


def test_the_tools_are_the_sdks_own_kinds(memory: WarmMemoryToolSync) -> None:
    assert isinstance(memory, BetaAbstractMemoryTool)
    assert issubclass(WarmMemoryTool, BetaAsyncAbstractMemoryTool)
    assert memory.name == "memory"
    assert memory.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_the_sdks_command_types_are_taken(memory: WarmMemoryToolSync) -> None:
    created = memory.execute(
        BetaMemoryTool20250818CreateCommand(command="create", path="/memories/f", file_text="x")
    )
    assert created == "File created successfully at: /memories/f"
    view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/f", view_range=[1, 1])
    assert memory.view(view) == numbered("/memories/f", "x")


def test_execute_runs_a_command_of_either_form_for_tool_loops_of_ones_own(memory: WarmMemoryToolSync) -> None:
    create = {"command": "create", "path": "/memories/f", "file_text": "x"}
    assert memory.execute(create) == "File created successfully at: /memories/f"
    view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/f")
    assert (
        memory.execute(view) == memory.execute(VIEW | {"path": "/memories/f"}) == numbered("/memories/f", "x")
    )
    with pytest.raises(WarmToolError, match="already exists"):
        memory.execute(create)
    with pytest.raises(WarmToolError, match="must be one of view"):
        memory.execute({"command": "read"})


async def test_the_async_tool_executes_too(binary: str, data_dir: Path) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        await memory.execute({"command": "create", "path": "/memories/f", "file_text": "x"})
        view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/f")
        assert await memory.execute(view) == numbered("/memories/f", "x")


def test_cache_control_is_sent_with_the_definition(connect: Connect) -> None:
    memory = connect(cache_control={"type": "ephemeral"})
    assert memory.to_dict()["cache_control"] == {"type": "ephemeral"}


def test_a_refusal_is_the_sdks_tool_error_with_the_plain_message(memory: WarmMemoryToolSync) -> None:
    with pytest.raises(ToolError) as caught:
        memory.call({"command": "view", "path": "/etc"})
    assert caught.value.content == str(caught.value) == "Path must start with /memories, got: /etc"
    assert isinstance(caught.value, WarmToolError)
    assert caught.value.code == "invalid_argument"
    assert caught.value.details == {}


async def test_the_async_tool_connects_by_async_with(binary: str, data_dir: Path) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        assert await memory.call(VIEW) == EMPTY
    with pytest.raises(WarmConnectionError, match="closed"):
        await memory.call(VIEW)


async def test_the_async_tool_connects_by_await(binary: str, data_dir: Path) -> None:
    memory = await WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)])
    async with memory:
        await memory.call({"command": "create", "path": "/memories/f", "file_text": "a ferry"})
        assert [hit.path for hit in await memory.recall("ferry")] == ["/memories/f"]
        assert "/memories/f" in str(await memory.recall_tool().call({"query": "ferry"}))
        assert await memory.clear_all_memory() == "All memory cleared"
    await memory.aclose()


async def test_any_task_may_close_the_async_tool(binary: str, data_dir: Path) -> None:
    memory = await WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)])
    await asyncio.create_task(memory.aclose())
    with pytest.raises(WarmConnectionError, match="closed"):
        await memory.call(VIEW)


async def test_a_cancelled_call_leaves_the_session_usable(binary: str, data_dir: Path) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        for _ in range(20):
            call = asyncio.create_task(memory.call(VIEW))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert await memory.call(VIEW) == EMPTY


async def test_the_async_tool_refuses_another_event_loop(binary: str, data_dir: Path) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(memory.call(VIEW)))


async def test_the_sync_tool_works_inside_a_running_event_loop(connect: Connect) -> None:
    memory = connect()
    assert memory.call(VIEW) == EMPTY
    assert await asyncio.to_thread(memory.call, VIEW) == EMPTY
    memory.close()


# concurrency


async def test_concurrent_edits_of_one_file_lose_nothing(binary: str, data_dir: Path) -> None:
    async with WarmMemoryTool.connect(command=binary, args=["--data-dir", str(data_dir)]) as memory:
        await memory.call({"command": "create", "path": "/memories/f", "file_text": ""})
        edits = (
            memory.call(
                {
                    "command": "insert",
                    "path": "/memories/f",
                    "insert_line": 0,
                    "insert_text": f"line {number}",
                }
            )
            for number in range(100)
        )
        await asyncio.gather(*edits)
        shown = await memory.call({"command": "view", "path": "/memories/f"})
    assert sorted(re.findall(r"line (\d+)", shown), key=int) == [str(number) for number in range(100)]


def test_threads_share_one_sync_tool_and_lose_nothing(memory: WarmMemoryToolSync) -> None:
    memory.call(
        {"command": "create", "path": "/memories/f", "file_text": "".join(f"<{n}>" for n in range(64))}
    )

    def edit(number: int) -> str:
        return memory.call(
            {
                "command": "str_replace",
                "path": "/memories/f",
                "old_str": f"<{number}>",
                "new_str": f"[{number}]",
            }
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(edit, range(64)))
    assert memory.call({"command": "view", "path": "/memories/f"}) == numbered(
        "/memories/f", "".join(f"[{n}]" for n in range(64))
    )


def test_only_one_of_many_creates_of_a_path_wins(memory: WarmMemoryToolSync) -> None:
    def create(number: int) -> bool:
        try:
            memory.call({"command": "create", "path": "/memories/f", "file_text": str(number)})
        except WarmToolError as error:
            assert error.code == "already_exists"
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(32)))
    assert won.count(True) == 1
    assert memory.call({"command": "view", "path": "/memories/f"}) == numbered(
        "/memories/f", str(won.index(True))
    )


def test_calls_under_way_when_the_tool_is_closed_all_come_to_an_end(connect: Connect) -> None:
    memory = connect()
    ends: list[str] = []

    def keep_calling() -> None:
        try:
            while True:
                memory.call(VIEW)
        except WarmConnectionError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=keep_calling) for _ in range(8)]
    for thread in threads:
        thread.start()
    memory.call(VIEW)
    memory.close()
    for thread in threads:
        thread.join(END_SECONDS)
    assert [end.partition(".")[0] for end in ends] == ["This memory tool is closed"] * 8


# servers that do not start


def test_a_missing_command_says_what_to_do() -> None:
    with pytest.raises(WarmConnectionError, match=r"no command `no-such-warm-mcp`.*full path"):
        WarmMemoryToolSync.connect(command="no-such-warm-mcp")


async def test_a_missing_command_says_what_to_do_to_async_programs_too() -> None:
    with pytest.raises(WarmConnectionError, match="no command"):
        await WarmMemoryTool.connect(command="no-such-warm-mcp")
    with pytest.raises(ConnectionError, match="no command"):
        async with WarmMemoryTool.connect(command="no-such-warm-mcp"):
            pass


def test_a_server_that_refuses_to_start_is_quoted(binary: str) -> None:
    with pytest.raises(WarmConnectionError) as caught:
        WarmMemoryToolSync.connect(command=binary, args=["--no-such-option"])
    assert "stopped before it was ready" in str(caught.value)
    assert "--no-such-option" in str(caught.value).partition("Its last words were:\n")[2]


def test_a_command_that_is_no_server_is_given_up_on_in_time_and_ended() -> None:
    before = children()
    with pytest.raises(WarmConnectionError, match=r"did not answer within 0.5 s"):
        WarmMemoryToolSync.connect(command="sleep", args=["3600"], start_timeout=0.5)
    assert wait_until(lambda: children() == before, GONE_SECONDS)


# servers that die


def test_a_server_that_dies_gives_an_error_that_says_what_to_do(connect: Connect) -> None:
    tools: list[WarmMemoryToolSync] = []
    pid = server_of(lambda: tools.append(connect()))
    memory = tools[0]
    memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid), GONE_SECONDS)
    for _ in range(3):
        with pytest.raises(WarmConnectionError, match=r"has stopped. Connect again") as caught:
            memory.call(VIEW)
        assert isinstance(caught.value, ToolError)
        assert isinstance(caught.value, ConnectionError)
        assert caught.value.code == "store_unavailable"
    memory.close()
    assert connect().call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


# ends


def test_close_ends_the_server_and_may_be_repeated(connect: Connect) -> None:
    tools: list[WarmMemoryToolSync] = []
    pid = server_of(lambda: tools.append(connect()))
    tools[0].close()
    assert wait_until(lambda: not is_running(pid), GONE_SECONDS)
    tools[0].close()
    with pytest.raises(WarmConnectionError, match=r"This memory tool is closed. Connect again"):
        tools[0].call(VIEW)
    with pytest.raises(WarmConnectionError, match="closed"):
        tools[0].recall("x")


def test_a_tool_that_nobody_holds_any_more_ends_its_server(binary: str, data_dir: Path) -> None:
    def start() -> None:
        WarmMemoryToolSync.connect(command=binary, args=["--data-dir", str(data_dir)]).call(VIEW)

    before = children()
    start()
    gc.collect()
    assert wait_until(lambda: children() == before, GONE_SECONDS)


PROGRAMS = {
    "sync tool left open": """
memory = WarmMemoryToolSync.connect(command=sys.argv[1], args=sys.argv[2:])
memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
""",
    "sync tool in use by a daemon thread": """
memory = WarmMemoryToolSync.connect(command=sys.argv[1], args=sys.argv[2:])
memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
def work():
    try:
        while True:
            memory.call({"command": "view", "path": "/memories"})
    except ConnectionError:
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""",
    "sync tool and an exception": """
memory = WarmMemoryToolSync.connect(command=sys.argv[1], args=sys.argv[2:])
memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
raise SystemExit(0)
""",
    "async tool left open": """
async def main():
    memory = await WarmMemoryTool.connect(command=sys.argv[1], args=sys.argv[2:])
    await memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
asyncio.run(main())
""",
    "killed outright": """
memory = WarmMemoryToolSync.connect(command=sys.argv[1], args=sys.argv[2:])
memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
os._exit(0)
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_that_closes_nothing_ends_with_its_server(
    binary: str, data_dir: Path, connect: Connect, program: str
) -> None:
    head = (
        "import asyncio, os, sys, threading, time\n"
        "from warm_memory_tool import WarmMemoryTool, WarmMemoryToolSync\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + program, binary, "--data-dir", str(data_dir)],
        timeout=END_SECONDS,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr, done.stderr
    held = str(data_dir).encode()

    def serves(pid: Path) -> bool:
        try:
            return held in (pid / "cmdline").read_bytes()
        except OSError:
            return False

    assert wait_until(lambda: not any(map(serves, Path("/proc").glob("[0-9]*"))), GONE_SECONDS)
    assert connect().call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


# environment


def test_the_server_gets_its_own_variables_home_and_configuration(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARM_MCP_DATA_DIR", str(tmp_path / "by-variable"))
    with WarmMemoryToolSync.connect(command=binary) as memory:
        memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    assert (tmp_path / "by-variable" / "identity.txt").is_file()
    with WarmMemoryToolSync.connect(
        command=binary, env={"WARM_MCP_DATA_DIR": str(tmp_path / "given")}
    ) as memory:
        assert memory.call(VIEW) == EMPTY
    assert (tmp_path / "given" / "identity.txt").is_file()


def test_the_default_store_is_in_the_users_data_folder(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    with WarmMemoryToolSync.connect(command=binary) as memory:
        assert memory.call(VIEW) == EMPTY
    assert list((tmp_path / "xdg").rglob("identity.txt"))


def test_the_server_never_sees_the_keys_of_other_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("WARM_MCP_LOG", "debug")
    with pytest.raises(WarmConnectionError) as caught:
        WarmMemoryToolSync.connect(command="sh", args=["-c", "env >&2; exit 1"], env={"MINE": "given"})
    said = str(caught.value)
    assert "sk-secret" not in said
    assert "MINE=given" in said
    assert "WARM_MCP_LOG=debug" in said


# namespaces


def test_a_namespace_is_a_store_of_its_own(either: Connect) -> None:
    one = either("--namespace-arg", namespace="one")
    one.call({"command": "create", "path": "/memories/f", "file_text": "a ferry"})
    assert [hit.path for hit in one.recall("ferry")] == ["/memories/f"]
    one.close()
    two = either("--namespace-arg", namespace="two")
    assert two.call(VIEW) == EMPTY
    assert len(two.recall("ferry")) == 0
    for command in (
        {"command": "view", "path": "/memories/f"},
        {"command": "delete", "path": "/memories/f"},
        {"command": "rename", "old_path": "/memories/f", "new_path": "/memories/g"},
    ):
        with pytest.raises(WarmToolError, match="does not exist"):
            two.call(command)
    assert two.clear_all_memory() == "All memory cleared"
    two.close()
    again = either("--namespace-arg", namespace="one")
    assert again.call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "a ferry")


def test_a_namespace_is_refused_by_a_server_without_namespace_arg(either: Connect) -> None:
    with pytest.raises(WarmToolError) as caught:
        either(namespace="one").call(VIEW)
    assert caught.value.code in ("invalid_argument", "forbidden")
    assert "namespace" in str(caught.value)
