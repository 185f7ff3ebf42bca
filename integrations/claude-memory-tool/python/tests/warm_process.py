"""A real `warm-mcp` process: where its binary is, and a bare line-by-line client for it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

VARIABLE = "WARM_MCP_BIN"
REPOSITORY = Path(__file__).resolve().parents[4]
REPLY_SECONDS = 60.0


def find_binary() -> Path:
    """Return the server to test.

    Raises:
        FileNotFoundError: There is none; the message says how to get one.
    """
    if given := os.environ.get(VARIABLE):
        path = Path(given).resolve()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise FileNotFoundError(f"{VARIABLE} names {given}, which is not an executable file")
        return path
    target = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
    built = [path for name in ("release", "debug") if (path := target / name / "warm-mcp").is_file()]
    if not built:
        raise FileNotFoundError(
            f"There is no warm-mcp to test under {target}. Build one with "
            f"`cargo build --release --bin warm-mcp`, or set {VARIABLE}=/path/to/warm-mcp"
        )
    return max(built, key=lambda path: path.stat().st_mtime)


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Wait for `done`, at most so long; return whether it came true."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return not Path("/proc/self").exists()
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def children() -> set[int]:
    """Return the running child processes of this one, and of its threads."""
    found: set[int] = set()
    for tasks in Path("/proc/self/task").glob("*/children"):
        found |= {int(pid) for pid in tasks.read_text().split()}
    return {pid for pid in found if is_running(pid)}


def server_of(connect: Callable[[], object]) -> int:
    """Return the process that `connect` starts."""
    before = children()
    connect()
    (pid,) = children() - before
    return pid


class ReplyError(AssertionError):
    """The server answered with a JSON-RPC error."""


class RawServer:
    """A server process, spoken to in JSON lines.

    Requests may be sent without waiting for replies. Whatever the server prints is kept in
    `stdout_lines`, byte for byte. Waiting for a reply has a deadline, so that a silent server fails
    a test and does not hang it.
    """

    def __init__(self, data_dir: Path, *args: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [find_binary(), "--data-dir", data_dir, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.stdout_lines: list[bytes] = []
        self.stderr = b""
        self._replies: dict[int, dict[str, Any]] = {}
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._next_id = 0
        self._threads = [
            threading.Thread(target=pump, daemon=True) for pump in (self._pump_stdout, self._pump_stderr)
        ]
        for thread in self._threads:
            thread.start()

    def initialize(self) -> dict[str, Any]:
        """Shake hands; return what the server says of itself."""
        result = self.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "raw-test", "version": "0"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        self.send_line(json.dumps(message, ensure_ascii=False).encode())

    def send_line(self, line: bytes) -> None:
        """Write one line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def post(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id, without waiting."""
        self._next_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self._next_id

    def post_call(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Send a tool call and return its id, without waiting."""
        return self.post("tools/call", {"name": tool, "arguments": arguments})

    def reply(self, request: int, seconds: float = REPLY_SECONDS) -> dict[str, Any]:
        """Wait for the whole reply to a request."""
        deadline = time.monotonic() + seconds
        while request not in self._replies:
            try:
                message = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no reply to request {request} within {seconds:g} s") from None
            if message is None:
                self._arrived.put(None)
                raise AssertionError(f"the server stopped; its stderr: {self.last_words()}")
            if isinstance(message.get("id"), int):
                self._replies[message["id"]] = message
        return self._replies.pop(request)

    def result(self, request: int, seconds: float = REPLY_SECONDS) -> dict[str, Any]:
        """Wait for the result of a request.

        Raises:
            ReplyError: It is a JSON-RPC error.
        """
        message = self.reply(request, seconds)
        if "error" in message:
            raise ReplyError(message["error"])
        result = message["result"]
        assert isinstance(result, dict)
        return result

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its result."""
        return self.result(self.post(method, params))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and wait for its whole result."""
        return self.result(self.post_call(tool, arguments))

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool that must succeed; return its structured content."""
        result = self.call(tool, arguments)
        assert not result.get("isError"), result
        content = result["structuredContent"]
        assert isinstance(content, dict)
        return content

    def memory(self, command: str, **fields: Any) -> str:  # noqa: ANN401
        """Run a memory command and return its text, be it a result or an error."""
        return text_of(self.call("memory", {"command": command, **fields}))

    def last_words(self) -> str:
        """Return all that the server wrote on standard error, once it has stopped."""
        self._threads[1].join(5)
        return self.stderr.decode(errors="replace")

    def stop(self) -> int:
        """End the server's input, and return the exit status; kill it if it does not stop in 10 s."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not stop within 10 s of the end of its input") from None
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return status

    def terminate(self) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)

    def __enter__(self) -> RawServer:
        self.initialize()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _pump_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.stdout_lines.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue  # stays in stdout_lines for the tests that look for it
            if isinstance(message, dict):
                self._arrived.put(message)
        self._arrived.put(None)

    def _pump_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text content of a tool result."""
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def pipelined(server: RawServer, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Send all calls without waiting, then collect all results, in the order of the calls."""
    requests = [server.post_call(tool, arguments) for tool, arguments in calls]
    return [server.result(request) for request in requests]


class HttpServer:
    """A server over HTTP, by default at a free port of this machine; ends with the block."""

    def __init__(
        self, *arguments: str, env: Mapping[str, str] | None = None, bind: str = "127.0.0.1:0"
    ) -> None:
        command = [str(find_binary()), "--transport", "http", "--bind", bind, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line.startswith("warm-mcp listening on "):
            self.process.wait()
            raise AssertionError(f"the server did not start: {line}")
        self.url = line.rpartition(" ")[2]

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(REPLY_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
