"""Patience with a gateway that does not answer: says so once, waits, says when it is back."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from trunkline import RemoteFault, TrunklineError, Unavailable
from trunkline.api.bus import Backoff
from trunkline_terminal.screen import Screen

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 3.0
"""Seconds between two tries: doubled up to the longest."""

NOTICE_AFTER_SECONDS = 3.0
"""Seconds without an answer after which the person sees a notice."""


class OutageNotice:
    """The state of the gateway, reachable or not, that the person saw last."""

    def __init__(self, screen: Screen, changed: Callable[[], None]) -> None:
        self._screen, self._changed = screen, changed
        self.now = False

    def begin(self) -> None:
        """It does not answer."""
        if not self.now:
            self.now = True
            self._changed()
            self._screen.note(
                "The platform does not answer. Waiting for it; accepted messages are saved.", "warning"
            )

    def end(self) -> None:
        """It answers."""
        if self.now:
            self.now = False
            self._changed()
            self._screen.note("The platform is back.")

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of ``ask``, asked again until there is one. ``ask`` must bear to be repeated."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                answer = await self._notify_when_slow(ask)
            except Unavailable:
                self.begin()
            else:
                self.end()
                return answer
            await backoff.sleep()

    async def _notify_when_slow(self, ask: Callable[[], Awaitable[T]]) -> T:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._begin_after_delay)
            try:
                answer = await ask()
            except (TrunklineError, RemoteFault) as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer  # pyright: ignore[reportReturnType] - the task group swallows nothing

    async def _begin_after_delay(self) -> None:
        await anyio.sleep(NOTICE_AFTER_SECONDS)
        self.begin()
