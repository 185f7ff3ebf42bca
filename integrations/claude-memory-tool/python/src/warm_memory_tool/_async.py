"""The memory tool for asynchronous programs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Any

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool, BetaAsyncFunctionTool, beta_async_tool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818Command,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from typing_extensions import Self, override

from ._backend import Backend, Options
from ._command import checked_input
from ._connection import Connection, ServerAddress, ServerCommand, server_of
from ._recall import RECALL_TOOL_DESCRIPTION, RECALL_TOOL_NAME, RecallResults, recall_text


class WarmMemoryTool(BetaAsyncAbstractMemoryTool):
    """Anthropic's memory tool on a WARM store, for `AsyncAnthropic`.

    Get one from `connect`. It may be used by any number of tasks of the event loop that it was
    connected in. Every command raises `WarmToolError` when the server refuses it.
    """

    def __init__(
        self, backend: Backend, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._backend = backend

    @classmethod
    def connect(
        cls,
        *,
        url: str | None = None,
        token: str | None = None,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        namespace: str | None = None,
        max_file_bytes: int | None = None,
        max_view_chars: int | None = None,
        start_timeout: float = 60.0,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> Connecting:
        """Connect to a `warm-mcp` server, started here or not.

        Both `async with WarmMemoryTool.connect(...) as memory` and
        `memory = await WarmMemoryTool.connect(...)` work; after the second, close it with `aclose`.

        Args:
            url: The address of a server that runs already, such as `http://127.0.0.1:8765/mcp`; without it
                one is started.
            token: That server's token; by default what the variable `WARM_MCP_TOKEN` says, if anything.
            command: The name of the server to start on the search path, or its full path; `warm-mcp` by
                default.
            args: Its arguments, such as `["--data-dir", "..."]`.
            env: Environment variables for it, on top of those that it gets anyway: home, path, locale
                and all that start with `WARM_` or `XDG_`.
            namespace: The store to use, on a server started with `--namespace-arg`.
            max_file_bytes: Largest file; it can only lower the server's limit.
            max_view_chars: Longest `view`; it can only lower the server's limit.
            start_timeout: Seconds until the server must have answered.
            cache_control: Sent to the API with the tool's definition.

        Raises:
            WarmConnectionError: On entering or awaiting, when there is no such command or the server
                stops at once; the message says what to do and what the server wrote.
        """
        server = server_of(url, token, command, args, env, start_timeout)
        return Connecting(cls, server, Options(namespace, max_file_bytes, max_view_chars), cache_control)

    @override
    async def call(self, input: object) -> str:
        """Run the command in `input`, as the model sent it."""
        result = await super().call(checked_input(input))
        return str(result)

    @override
    async def execute(self, command: BetaMemoryTool20250818Command | Mapping[str, object]) -> str:
        """Run one command, in the SDK's type or as the model sent it: for tool loops of your own."""
        if isinstance(command, Mapping):
            return await self.call(command)
        return str(await super().execute(command))

    @override
    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or a directory two levels deep."""
        return await self._backend.run(command)

    @override
    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file; an existing one is never overwritten."""
        return await self._backend.run(command)

    @override
    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace the one occurrence of a text in a file."""
        return await self._backend.run(command)

    @override
    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put text after a line of a file."""
        return await self._backend.run(command)

    @override
    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Remove a file or a whole directory."""
        return await self._backend.run(command)

    @override
    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or directory another path."""
        return await self._backend.run(command)

    @override
    async def clear_all_memory(self) -> str:
        """Forget every file under `/memories`; other memories of the store stay."""
        return await self._backend.clear()

    async def recall(self, query: str, k: int = 5) -> RecallResults:
        """Return the memory files most relevant to `query`, best first, `k` at most."""
        return await self._backend.recall(query, k)

    def recall_tool(self) -> BetaAsyncFunctionTool[Any]:
        """Return the companion tool `memory_recall`, to pass to the tool runner beside this one."""

        async def memory_recall(query: str, k: int = 5) -> str:
            """Search the memory files.

            Args:
                query: What to look for, in plain language.
                k: How many files to return at most.
            """
            return recall_text(query, await self.recall(query, k))

        return beta_async_tool(memory_recall, name=RECALL_TOOL_NAME, description=RECALL_TOOL_DESCRIPTION)

    async def aclose(self) -> None:
        """Stop the server. Closing twice is fine; commands after it raise `WarmConnectionError`."""
        await self._backend.connection.close()

    close = aclose

    async def __aenter__(self) -> Self:
        """Return this tool; leaving the block closes it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close this tool."""
        await self.aclose()


class Connecting:
    """A connection to be made: await it, or enter it with `async with`."""

    def __init__(
        self,
        tool: type[WarmMemoryTool],
        server: ServerCommand | ServerAddress,
        options: Options,
        cache_control: BetaCacheControlEphemeralParam | None,
    ) -> None:
        self._tool = tool
        self._server = server
        self._options = options
        self._cache_control = cache_control
        self._entered: WarmMemoryTool | None = None

    def __await__(self) -> Generator[Any, None, WarmMemoryTool]:
        """Connect; whoever awaits it closes what it returns."""
        return self._open().__await__()

    async def __aenter__(self) -> WarmMemoryTool:
        """Connect; leaving the block closes the connection."""
        self._entered = await self._open()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        if self._entered is not None:
            await self._entered.aclose()

    async def _open(self) -> WarmMemoryTool:
        connection = await Connection.open(self._server)
        return self._tool(Backend(connection, self._options), cache_control=self._cache_control)
