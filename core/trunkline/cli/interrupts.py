"""Handle Ctrl-C in each phase of the program. No phase shows a traceback.

While modules are imported, and at the very end, it kills the process as it kills any other. In a command that asks
nobody it is Python's own KeyboardInterrupt. In asynchronous work the first one cancels the work, which then ends in
good order, and the second one ends the process: a KeyboardInterrupt in the middle of a loop would break it at a place
that nobody chose. ``trunkline up`` and a sitting at a terminal take Ctrl-C themselves while they run.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptHandler:
    """Ctrl-C during asynchronous work. ``task`` is what is cancelled, once there is one."""

    def __init__(self) -> None:
        self.count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    def cancel_current_task(self) -> None:
        """Have Ctrl-C cancel the task that runs; one that was pressed already does it now."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.count:
            self._cancel()

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
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
            )  # a loop that waits would not look before it is woken


@contextmanager
def handle_interrupts() -> Iterator[InterruptHandler]:
    """Ctrl-C is for asynchronous work as long as the block lasts."""
    found = InterruptHandler()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # it is ignored, or somebody else's
        yield found
        return
    signal.signal(signal.SIGINT, found.handle_signal)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
