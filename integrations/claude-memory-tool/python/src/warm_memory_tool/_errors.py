"""What goes wrong, in the form that the tool runner reports to the model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from anthropic.lib.tools import ToolError


class WarmToolError(ToolError):
    """A command that was refused or failed.

    The message is the server's own, word for word, and becomes the content of the tool result, with
    `is_error` set. `code` is the server's name for the kind of failure (`invalid_argument`,
    `too_large`, `not_found`, `already_exists`, `version_conflict`, `store_unavailable`, `busy`,
    `forbidden`, `internal`); `details` is whatever else it said, empty when it said nothing.
    """

    def __init__(
        self, message: str, *, code: str = "internal", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details: Mapping[str, Any] = MappingProxyType(dict(details or {}))


class WarmConnectionError(WarmToolError, ConnectionError):
    """There is no server to ask: it could not be started, it has stopped, or this tool was closed.

    Nothing is known of a command that was under way; one that had been answered is in the store.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, code="store_unavailable")
