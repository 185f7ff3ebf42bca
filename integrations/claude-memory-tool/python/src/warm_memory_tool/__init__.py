"""Anthropic's memory tool, served from a sealed and searchable WARM store.

`WarmMemoryTool` and `WarmMemoryToolSync` plug into the tool runner of the `anthropic` package. Each
keeps one connection to a `warm-mcp` server and turns every memory command into one call of it; the
rules, the limits and the exact strings all live in the server.
"""

from ._async import WarmMemoryTool
from ._errors import WarmConnectionError, WarmToolError
from ._recall import RecallHit, RecallResults
from ._sync import WarmMemoryToolSync

__all__ = [
    "RecallHit",
    "RecallResults",
    "WarmConnectionError",
    "WarmMemoryTool",
    "WarmMemoryToolSync",
    "WarmToolError",
]
