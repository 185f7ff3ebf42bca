"""An event loop in a thread of its own, for programs that have none or must not touch theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from ._errors import WarmConnectionError

_CLOSE_SECONDS = 10.0

T = TypeVar("T")


class Portal:
    """Runs coroutines in a background event loop, for callers in any thread.

    The thread is a daemon and `close` waits for it only so long, so that a program can always end.
    """

    def __init__(self) -> None:
        # Held while a call is handed over, so that whatever was accepted is scheduled before the
        # loop hears that it has to stop: an accepted call always gets an answer.
        self._lock = threading.RLock()
        self._closed = False
        self._last: asyncio.Task[None] | None = None
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(
            target=_run_loop, args=(started,), name="warm-memory-tool", daemon=True
        )
        self._thread.start()
        self._loop, self._stop = started.result()

    def run(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that `function` makes and return what it returns.

        Raises:
            WarmConnectionError: The portal is closed, or was closed meanwhile.
        """
        with self._lock:
            if self._closed:
                raise _closed_error()
            future = asyncio.run_coroutine_threadsafe(function(), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise _closed_error() from None
        except BaseException:
            future.cancel()  # an interrupted caller takes its call along
            raise

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Run `last`, stop the loop, and wait for its thread. Closing twice is fine."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._schedule_stop, last)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_SECONDS)

    def _schedule_stop(self, last: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        if last is None:
            self._stop.set()
            return
        self._last = self._loop.create_task(last())
        self._last.add_done_callback(lambda _: self._stop.set())


def _run_loop(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    try:
        asyncio.run(main())
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


def _closed_error() -> WarmConnectionError:
    return WarmConnectionError("This memory tool is closed. Connect again to use the memory.")
