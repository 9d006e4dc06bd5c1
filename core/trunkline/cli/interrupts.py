"""Handles Ctrl-C in each phase of the program. No phase shows a traceback.

During imports and at the very end, Ctrl-C kills the process. In a synchronous command it raises KeyboardInterrupt. In
asynchronous work the first Ctrl-C cancels the work, which then ends in an orderly way, and the second one ends the
process. A KeyboardInterrupt inside the event loop would interrupt it at an arbitrary point. ``trunkline up`` and
``trunkline chat`` handle Ctrl-C themselves while they run.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptHandler:
    """Handles Ctrl-C during asynchronous work. ``count`` is the number of times that it was pressed."""

    def __init__(self) -> None:
        self.count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    def cancel_current_task(self) -> None:
        """Let Ctrl-C cancel the current task. If Ctrl-C was pressed before, cancel the task now."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.count:
            self._cancel()

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: cancel the task the first time, exit the second time."""
        self.count += 1
        if self.count > 1:
            from trunkline.runtime.signals import exit_immediately

            exit_immediately(128 + number)
        self._cancel()

    def _cancel(self) -> None:
        if self._loop is not None and self._task is not None and not self._task.done():
            self._task.cancel()
            self._loop.call_soon_threadsafe(
                lambda: None
            )  # wakes the event loop, which does not notice the cancellation while it waits


@contextmanager
def handle_interrupts() -> Iterator[InterruptHandler]:
    """Handle Ctrl-C with an InterruptHandler within the context. A handler that is not Python's default stays in
    place.
    """
    found = InterruptHandler()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # the signal is ignored, or has another handler
        yield found
        return
    signal.signal(signal.SIGINT, found.handle_signal)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
