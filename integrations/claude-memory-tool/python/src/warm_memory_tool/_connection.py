"""One connection to one `warm-mcp` server, started and stopped here."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    TextContent,
)
from pydantic import ValidationError

from ._command import refuse_unencodable
from ._environment import server_environment
from ._errors import WarmConnectionError, WarmToolError
from ._stderr import StderrTee

_LAST_WORDS_SECONDS = 1.0
_DISTRIBUTION = "warm-memory-tool"


@dataclass(frozen=True)
class ServerCommand:
    """How to start a server."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    start_timeout: float = 60.0
    """Seconds until it must have answered the handshake; a large store may have an index to rebuild."""

    def __str__(self) -> str:
        """Return it as one would type it."""
        return shlex.join([self.command, *self.args])


class Connection:
    """A running server and the session with it.

    The connection lives in a task of its own, so that any task of the same event loop may call and
    close it. Create it with `open`.
    """

    def __init__(self, server: ServerCommand) -> None:
        self._server = server
        self._stderr = StderrTee()
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._session: ClientSession | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, server: ServerCommand) -> Connection:
        """Start the server and shake hands with it.

        Raises:
            WarmConnectionError: It can't be started, stopped at once, or does not answer; the message
                says what to do, and quotes what it wrote on standard error.
        """
        connection = cls(server)
        ready: asyncio.Future[None] = connection._loop.create_future()
        connection._task = asyncio.create_task(connection._live(ready), name=f"warm-mcp {server.command}")
        try:
            await asyncio.wait({ready, connection._task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            connection._task.cancel()
            await connection.close()
            raise
        if ready.done():
            try:
                ready.result()
            except WarmConnectionError:
                await connection.close()
                raise
        else:
            connection._task.result()
        return connection

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call one tool of the server, once.

        Raises:
            WarmToolError: The server refused or failed; the message is its own.
            WarmConnectionError: The server is gone, or this connection was closed.
        """
        refuse_unencodable(arguments)
        session = self._session
        if session is None:
            raise self._gone()
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("This memory tool belongs to another event loop; connect one in this loop")
        params = CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            result = await session.send_request(CallToolRequest(params=params), CallToolResult)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise await self._died() from None
            raise WarmToolError(error.message, details={"jsonrpc_code": error.code}) from None
        except ValidationError as error:
            raise WarmToolError(f"The server's answer to `{tool}` has the wrong shape: {error}") from None
        if result.is_error:
            raise _tool_error(result)
        return result

    async def close(self) -> None:
        """Stop the server: end its input, then terminate it if it lingers. Closing twice is fine."""
        self._stop.set()
        if self._task is not None:
            await asyncio.shield(asyncio.wait({self._task}))

    async def _live(self, ready: asyncio.Future[None]) -> None:
        parameters = StdioServerParameters(
            command=self._server.command,
            args=list(self._server.args),
            env=server_environment(self._server.env, self._server.args),
        )
        try:
            with self._stderr:
                async with (
                    stdio_client(parameters, errlog=self._stderr.writer) as (reader, writer),
                    ClientSession(reader, writer, client_info=_client_info()) as session,
                ):
                    self._stderr.started()
                    # Errors are handed over here: leaving the block with one would wrap it in a group.
                    try:
                        await asyncio.wait_for(session.initialize(), self._server.start_timeout)
                    except Exception as error:
                        ready.set_exception(await self._no_handshake(error))
                    else:
                        self._session = session
                        ready.set_result(None)
                        await self._stop.wait()
                    finally:
                        self._session = None
        except (OSError, ValueError) as error:
            if ready.done():
                raise
            ready.set_exception(self._no_start(error))

    def _no_start(self, error: Exception) -> WarmConnectionError:
        command = self._server.command
        if isinstance(error, FileNotFoundError):
            return WarmConnectionError(
                f"The server could not be started: there is no command `{command}`. "
                "Install warm-mcp, or pass its full path as `command`."
            )
        return WarmConnectionError(f"The server `{command}` could not be started: {error}.")

    async def _no_handshake(self, error: Exception) -> WarmConnectionError:
        if isinstance(error, asyncio.TimeoutError):
            what = f"did not answer within {self._server.start_timeout:g} s"
            todo = "Check that this command starts an MCP server on its standard input and output."
        elif isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            await self._hear_out()
            what = "stopped before it was ready"
            todo = "Run `warm-mcp doctor` with the same options to see what it needs."
        else:
            what = f"refused the handshake ({error})"
            todo = "Check that this command starts a warm-mcp of a current version."
        return WarmConnectionError(f"The server `{self._server}` {what}. {todo}{self._last_words()}")

    async def _died(self) -> WarmConnectionError:
        if not self._stop.is_set():
            await self._hear_out()
        return self._gone()

    def _gone(self) -> WarmConnectionError:
        if self._stop.is_set():
            return WarmConnectionError("This memory tool is closed. Connect again to use the memory.")
        return WarmConnectionError(
            f"The server `{self._server}` has stopped. Connect again to start a new one; every change that "
            f"it had answered is in the store.{self._last_words()}"
        )

    async def _hear_out(self) -> None:
        """Wait a moment for what a stopped server wrote last."""
        deadline = self._loop.time() + _LAST_WORDS_SECONDS
        while not self._stderr.ended and self._loop.time() < deadline:  # noqa: ASYNC110 - a thread knows
            await asyncio.sleep(0.01)

    def _last_words(self) -> str:
        tail = self._stderr.tail()
        return f"\nIts last words were:\n{tail}" if tail else ""


def result_text(result: CallToolResult) -> str:
    """Return the text of a result, exactly as the server sent it."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def _tool_error(result: CallToolResult) -> WarmToolError:
    structured = result.structured_content
    if not isinstance(structured, Mapping):
        return WarmToolError(result_text(result))
    details = structured.get("details")
    return WarmToolError(
        result_text(result) or str(structured.get("message", "The server gave no reason")),
        code=str(structured.get("code", "internal")),
        details=details if isinstance(details, Mapping) else None,
    )


def _client_info() -> Implementation:
    try:
        number = version(_DISTRIBUTION)
    except PackageNotFoundError:  # run from a source tree
        number = "0"
    return Implementation(name=_DISTRIBUTION, version=number)
