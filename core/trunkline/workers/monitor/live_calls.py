"""The single model calls that a monitor runs outside of turns: their time limits, their end at a stop, and draining."""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio

from trunkline.contracts.models.messages import TIMEOUT
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline_bus import Refusal

T = TypeVar("T")


class LiveCalls:
    """The calls of one handler. A call has one or more steps, each of which waits for the vendor."""

    def __init__(self) -> None:
        self._steps: set[anyio.CancelScope] = set()
        self._count = 0
        self._idle = anyio.Event()
        self._idle.set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call as running within the context."""
        self._count += 1
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    async def step(self, wait: Callable[[], Awaitable[T]], deadline: "Deadline") -> T:
        """Return the result of one step.

        Raises:
          Refusal: ``timeout`` at the deadline, ``engine_unavailable`` if the calls are stopped.
        """
        with anyio.CancelScope() as stopping:
            self._steps.add(stopping)
            try:
                with anyio.move_on_after(deadline.left):
                    return await wait()
                raise deadline.refusal
            finally:
                self._steps.discard(stopping)
        raise refused(ErrorCode.ENGINE_UNAVAILABLE)

    async def drain(self) -> None:
        """Wait until no call is running."""
        await self._idle.wait()

    def stop(self) -> None:
        """Cancel all running calls; their callers may call another monitor."""
        for scope in self._steps:
            scope.cancel()


class Deadline:
    """The end of a call that may take ``timeout`` seconds; None is no limit."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def left(self) -> float | None:
        """The seconds that are left, None without a limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def refusal(self) -> Refusal:
        """The refusal of a call that reached its deadline."""
        return Refusal(TIMEOUT, f"The model did not finish its answer within {self._timeout:g} s.")


def refused(code: ErrorCode) -> Refusal:
    """Return a refusal with the fixed sentence of the code."""
    return Refusal(code, FIXED_SENTENCES[code])
