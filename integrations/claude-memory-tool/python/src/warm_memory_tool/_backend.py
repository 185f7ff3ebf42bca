"""What the two memory tools have in common: one call of the server for each thing asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anthropic.types.beta import BetaMemoryTool20250818Command

from ._command import command_arguments
from ._connection import Connection, result_text
from ._errors import WarmToolError
from ._recall import RecallResults, parse_recall

ROOT = "/memories"


@dataclass(frozen=True)
class Options:
    """What goes with every call."""

    namespace: str | None = None
    """The store to use, on a server started with `--namespace-arg`."""
    max_file_bytes: int | None = None
    """Largest file, in bytes; it can only lower the server's limit."""
    max_view_chars: int | None = None
    """Longest `view`, in characters; it can only lower the server's limit."""


@dataclass(frozen=True)
class Backend:
    """The server's tools, as the memory tools need them."""

    connection: Connection
    options: Options

    async def run(self, command: BetaMemoryTool20250818Command) -> str:
        """Run one memory command and return its result string.

        Raises:
            WarmToolError: The server refused it.
        """
        arguments = command_arguments(command)
        limits = {
            "max_file_bytes": self.options.max_file_bytes,
            "max_view_chars": self.options.max_view_chars,
        }
        arguments |= {name: limit for name, limit in limits.items() if limit is not None}
        return result_text(await self.connection.call("memory", self._scoped(arguments)))

    async def recall(self, query: str, k: int) -> RecallResults:
        """Search the files under `/memories`.

        Raises:
            WarmToolError: The server refused it.
        """
        arguments = self._scoped({"query": query, "k": k, "under": ROOT})
        result = await self.connection.call("recall", arguments)
        try:
            return parse_recall(result.structured_content or {})
        except (KeyError, TypeError, ValueError) as error:
            raise WarmToolError(f"The server's answer to `recall` has the wrong shape: {error!r}") from error

    async def clear(self) -> str:
        """Forget every file under `/memories`, in one transaction.

        Raises:
            WarmToolError: The server refused it.
        """
        await self.connection.call("forget", self._scoped({"prefix": f"{ROOT}/", "confirm": True}))
        return "All memory cleared"

    def _scoped(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        namespace = self.options.namespace
        return {**arguments, **({"namespace": namespace} if namespace is not None else {})}
