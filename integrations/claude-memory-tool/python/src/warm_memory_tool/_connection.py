"""One connection to one `warm-mcp` server: one that is started and stopped here, or one at an address."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import httpx2
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
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
_FIRST_ERROR = HTTPStatus.BAD_REQUEST


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


TOKEN_VARIABLE = "WARM_MCP_TOKEN"  # noqa: S105 - where a token is, not one


@dataclass(frozen=True)
class ServerAddress:
    """Where a server that serves over HTTP is."""

    url: str
    token: str | None = field(default=None, repr=False)
    """What it demands; by default what the variable `WARM_MCP_TOKEN` says, if anything."""
    start_timeout: float = 60.0
    """Seconds until it must have answered the handshake."""

    def __str__(self) -> str:
        """Return its address."""
        return self.url

    def headers(self) -> dict[str, str]:
        """Return what goes with every request."""
        token = self.token if self.token is not None else os.environ.get(TOKEN_VARIABLE)
        return {"Authorization": f"Bearer {token}"} if token else {}


def server_of(
    url: str | None,
    token: str | None,
    command: str | None,
    args: Sequence[str],
    env: Mapping[str, str] | None,
    start_timeout: float,
) -> ServerCommand | ServerAddress:
    """Return what was asked for: a server to start, or one at an address.

    Raises:
        ValueError: Both were asked for, or a token without an address.
    """
    if url is None:
        if token is not None:
            raise ValueError("`token` goes with `url`: a server that is started here needs none")
        return ServerCommand(command or "warm-mcp", tuple(args), env, start_timeout)
    if command is not None or args or env is not None:
        raise ValueError(
            "Give `url` for a server that runs already, or `command`, `args` and `env` to start one"
        )
    return ServerAddress(url, token, start_timeout)


class Connection:
    """A running server and the session with it.

    The connection lives in a task of its own, so that any task of the same event loop may call and
    close it. Create it with `open`.
    """

    def __init__(self, server: ServerCommand | ServerAddress) -> None:
        self._server = server
        self._stderr = StderrTee()
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._session: ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._status = 200
        """Of the last answer over HTTP."""

    @classmethod
    async def open(cls, server: ServerCommand | ServerAddress) -> Connection:
        """Start or reach the server and shake hands with it.

        Raises:
            WarmConnectionError: It can't be started, stopped at once, or does not answer; the message
                says what to do, and quotes what it wrote on standard error.
        """
        connection = cls(server)
        ready: asyncio.Future[None] = connection._loop.create_future()
        connection._task = asyncio.create_task(connection._live(ready), name=f"warm-mcp {server}")
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
            if isinstance(self._server, ServerAddress) and self._status >= _FIRST_ERROR:
                raise WarmConnectionError(f"The server at {self._server} {self._refusal()}") from None
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
        try:
            with self._stderr:
                async with self._session_with_server() as session:
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
        except Exception as error:
            # Over HTTP, what one request meets ends the connection, and the next call says that it is gone.
            if not isinstance(self._server, ServerAddress):
                raise
            if not ready.done():
                ready.set_exception(self._no_address(self._server, error))

    @asynccontextmanager
    async def _session_with_server(self) -> AsyncIterator[ClientSession]:
        server = self._server
        if isinstance(server, ServerCommand):
            parameters = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env=server_environment(server.env, server.args),
            )
            async with (
                stdio_client(parameters, errlog=self._stderr.writer) as (reader, writer),
                ClientSession(reader, writer, client_info=_client_info()) as session,
            ):
                yield session
        else:
            async with (
                self._noting(create_mcp_http_client(headers=server.headers())) as client,
                # A memory may be longer than the client's own limit for one event.
                streamable_http_client(server.url, http_client=client, max_sse_event_size=None) as streams,
                ClientSession(streams[0], streams[1], client_info=_client_info()) as session,
            ):
                yield session

    def _noting(self, client: httpx2.AsyncClient) -> httpx2.AsyncClient:
        """Let the client note the status of each answer: errors of the session tell nothing of it."""

        async def note(response: httpx2.Response) -> None:
            self._status = response.status_code

        client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], note]}
        return client

    def _refusal(self) -> str:
        """Return why the last answer over HTTP is none, and what to do."""
        if self._status == HTTPStatus.UNAUTHORIZED:
            return (
                "refused access (HTTP 401). Pass the token that it was started with as `token`, or set "
                f"{TOKEN_VARIABLE}."
            )
        if self._status == HTTPStatus.FORBIDDEN:
            return (
                "refused access (HTTP 403). It answers to the hosts that it knows alone: start it with "
                "--allow-host and the host of this address."
            )
        if self._status == HTTPStatus.NOT_FOUND:
            return (
                "does not know this session, or has nothing at this path. Check the `url` and connect again."
            )
        return (
            f"answered with HTTP {self._status}. Whether it did what was asked is not known. View the "
            "memory, then go on."
        )

    def _no_start(self, error: Exception) -> WarmConnectionError:
        if isinstance(self._server, ServerAddress):
            return self._no_address(self._server, error)
        command = self._server.command
        if isinstance(error, FileNotFoundError):
            return WarmConnectionError(
                f"The server could not be started: there is no command `{command}`. "
                "Install warm-mcp, or pass its full path as `command`."
            )
        return WarmConnectionError(f"The server `{command}` could not be started: {error}.")

    def _no_address(self, server: ServerAddress, error: BaseException) -> WarmConnectionError:
        if self._status >= _FIRST_ERROR:
            return WarmConnectionError(f"The server at {server} {self._refusal()}")
        while nested := getattr(error, "exceptions", None):
            error = nested[0]
        return WarmConnectionError(
            f"The server at {server} could not be reached or refused the handshake ({error}). "
            "Check that `warm-mcp --transport http` runs there, that the address ends in /mcp, and that "
            f"`token` or {TOKEN_VARIABLE} is its token."
        )

    async def _no_handshake(self, error: Exception) -> WarmConnectionError:
        if isinstance(self._server, ServerAddress):
            return self._no_address(self._server, error)
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
        if isinstance(self._server, ServerAddress):
            return WarmConnectionError(
                f"The server at {self._server} can't be reached any more. Connect again once it runs; every "
                "change that it had answered is in the store."
            )
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
