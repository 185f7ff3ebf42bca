"""The memory tool for synchronous programs."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaFunctionTool, beta_tool
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
from ._connection import Connection, server_of
from ._portal import Portal
from ._recall import RECALL_TOOL_DESCRIPTION, RECALL_TOOL_NAME, RecallResults, recall_text


class WarmMemoryToolSync(BetaAbstractMemoryTool):
    """Anthropic's memory tool on a WARM store, for `Anthropic`.

    Get one from `connect`. It may be used from any number of threads, with or without a running event
    loop: the connection lives in a thread of its own. Every command raises `WarmToolError` when the
    server refuses it. A tool that nobody closed is closed when the program ends.
    """

    def __init__(
        self, portal: Portal, backend: Backend, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._portal = portal
        self._backend = backend
        self._close = weakref.finalize(self, portal.close, backend.connection.close)

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
    ) -> Self:
        """Connect to a `warm-mcp` server, started here or not; use it in a `with` block, or call `close`.

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
            WarmConnectionError: There is no such command or address, or the server stops at once; the
                message says what to do and what the server wrote.
            ValueError: Both `url` and a command were given.
        """
        server = server_of(url, token, command, args, env, start_timeout)
        portal = Portal()
        try:
            connection = portal.run(lambda: Connection.open(server))
        except BaseException:
            portal.close()
            raise
        backend = Backend(connection, Options(namespace, max_file_bytes, max_view_chars))
        return cls(portal, backend, cache_control=cache_control)

    @override
    def call(self, input: object) -> str:
        """Run the command in `input`, as the model sent it."""
        return str(super().call(checked_input(input)))

    @override
    def execute(self, command: BetaMemoryTool20250818Command | Mapping[str, object]) -> str:
        """Run one command, in the SDK's type or as the model sent it: for tool loops of your own."""
        if isinstance(command, Mapping):
            return self.call(command)
        return str(super().execute(command))

    @override
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or a directory two levels deep."""
        return self._run(command)

    @override
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file; an existing one is never overwritten."""
        return self._run(command)

    @override
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace the one occurrence of a text in a file."""
        return self._run(command)

    @override
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put text after a line of a file."""
        return self._run(command)

    @override
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Remove a file or a whole directory."""
        return self._run(command)

    @override
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or directory another path."""
        return self._run(command)

    @override
    def clear_all_memory(self) -> str:
        """Forget every file under `/memories`; other memories of the store stay."""
        return self._portal.run(self._backend.clear)

    def recall(self, query: str, k: int = 5) -> RecallResults:
        """Return the memory files most relevant to `query`, best first, `k` at most."""
        return self._portal.run(lambda: self._backend.recall(query, k))

    def recall_tool(self) -> BetaFunctionTool[Any]:
        """Return the companion tool `memory_recall`, to pass to the tool runner beside this one."""

        def memory_recall(query: str, k: int = 5) -> str:
            """Search the memory files.

            Args:
                query: What to look for, in plain language.
                k: How many files to return at most.
            """
            return recall_text(query, self.recall(query, k))

        return beta_tool(memory_recall, name=RECALL_TOOL_NAME, description=RECALL_TOOL_DESCRIPTION)

    def close(self) -> None:
        """Stop the server. Closing twice is fine; commands after it raise `WarmConnectionError`."""
        self._close()

    def __enter__(self) -> Self:
        """Return this tool; leaving the block closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close this tool."""
        self.close()

    def _run(self, command: BetaMemoryTool20250818Command) -> str:
        return self._portal.run(lambda: self._backend.run(command))
