"""Fixtures: every test talks to a real `warm-mcp` process with a store of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from warm_memory_tool import WarmMemoryToolSync, WarmToolError
from warm_process import VARIABLE, HttpServer, RawServer, find_binary


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    try:
        find_binary()
    except FileNotFoundError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header() -> str:
    try:
        return f"warm-mcp: {find_binary()}"
    except FileNotFoundError:
        return "warm-mcp: none"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of whoever runs the tests away from the servers under test."""
    for name in os.environ:
        if name.startswith(("WARM_", "ANTHROPIC_")) and name != VARIABLE:
            monkeypatch.delenv(name)
    for name in ("RUST_LOG", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def binary() -> str:
    """The server's path."""
    return str(find_binary())


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder for a store; it does not exist yet."""
    return tmp_path / "data"


class Connect(Protocol):
    def __call__(
        self,
        *args: str,
        at: Path | None = None,
        **options: Any,  # noqa: ANN401
    ) -> WarmMemoryToolSync: ...


@pytest.fixture
def connect(binary: str, data_dir: Path) -> Iterator[Connect]:
    """Connects a memory tool to a new server on the test's store; closes it in the end."""
    with ExitStack() as stack:

        def make(*args: str, at: Path | None = None, **options: Any) -> WarmMemoryToolSync:  # noqa: ANN401
            arguments = ["--data-dir", str(at or data_dir), *args]
            tool = WarmMemoryToolSync.connect(command=binary, args=arguments, **options)
            return stack.enter_context(tool)

        yield make


@pytest.fixture(params=["stdio", "http"])
def either(request: pytest.FixtureRequest, connect: Connect, data_dir: Path) -> Iterator[Connect]:
    """Connects like `connect`; every test that uses it runs over standard input and output, and over HTTP."""
    if request.param == "stdio":
        yield connect
        return
    with ExitStack() as stack:

        def make(*args: str, at: Path | None = None, **options: Any) -> WarmMemoryToolSync:  # noqa: ANN401
            server = stack.enter_context(HttpServer("--data-dir", str(at or data_dir), *args))
            return stack.enter_context(WarmMemoryToolSync.connect(url=server.url, **options))

        yield make


@pytest.fixture
def memory(either: Connect) -> WarmMemoryToolSync:
    """A memory tool on an empty store."""
    return either()


@pytest.fixture
def raw(data_dir: Path) -> Iterator[RawServer]:
    """A server on an empty store, spoken to in JSON lines, after the handshake."""
    with RawServer(data_dir) as server:
        yield server


Do = Callable[..., str]


@pytest.fixture
def do(memory: WarmMemoryToolSync) -> Do:
    """Runs a command, given as the model gives it, on an empty store."""

    def run(command: str, **fields: object) -> str:
        return memory.call({"command": command, **fields})

    return run


Refused = Callable[..., WarmToolError]


@pytest.fixture
def refused(memory: WarmMemoryToolSync) -> Refused:
    """Runs a command that must be refused, and returns the error."""

    def run(command: str, **fields: object) -> WarmToolError:
        with pytest.raises(WarmToolError) as caught:
            memory.call({"command": command, **fields})
        return caught.value

    return run
