"""A server's standard error: passed on as it comes, its last words kept."""

from __future__ import annotations

import os
import threading
from io import TextIOWrapper
from types import TracebackType

from typing_extensions import Self

_KEEP_BYTES = 4096
_STDERR = 2


class StderrTee:
    """A pipe for a server's standard error.

    Everything is written through to this process's standard error, and the last few kilobytes are
    kept for messages about a server that stopped. Enter it, hand `writer` to the server, then call
    `started`. The reading thread ends by itself when the last writer is gone; it never holds up the
    interpreter's exit.
    """

    def __init__(self) -> None:
        self._tail = b""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Open the pipe and start to read it."""
        reader, writer = os.pipe()
        self.writer: TextIOWrapper = os.fdopen(writer, "w", encoding="utf-8")
        self._thread = threading.Thread(
            target=self._pump, args=(reader,), name="warm-mcp stderr", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the pipe; the thread follows once the server is gone."""
        self.started()

    def started(self) -> None:
        """Give up this process's own end: from now on only the server writes."""
        self.writer.close()

    @property
    def ended(self) -> bool:
        """Whether the last writer is gone and all that it wrote was read."""
        return not self._thread.is_alive()

    def tail(self) -> str:
        """Return the last whole lines that the server wrote."""
        with self._lock:
            kept = self._tail
        if len(kept) == _KEEP_BYTES:
            kept = kept.partition(b"\n")[2] or kept
        return kept.decode("utf-8", errors="replace").strip()

    def _pump(self, reader: int) -> None:
        # The descriptor is used bare: a thread stopped inside a buffered stream can hold its lock
        # while the interpreter wants it for a last flush.
        try:
            while chunk := os.read(reader, 65536):
                with self._lock:
                    self._tail = (self._tail + chunk)[-_KEEP_BYTES:]
                _write_through(chunk)
        finally:
            os.close(reader)


def _write_through(chunk: bytes) -> None:
    try:
        while chunk:
            chunk = chunk[os.write(_STDERR, chunk) :]
    except OSError:
        return  # this process has no standard error
