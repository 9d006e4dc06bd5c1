"""An async iterator made from a function. Unlike a generator, it can be used after a step was cancelled."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class StepIterator(Generic[T]):
    """An async iterator that awaits ``step()`` for each item. ``step`` raises ``StopAsyncIteration`` at the end.

    The iterator stays usable after a timeout around ``anext``, provided that cancelling ``step`` loses no item.
    """

    def __init__(self, step: Callable[[], Awaitable[T]]) -> None:
        self._step = step

    def __aiter__(self) -> "StepIterator[T]":
        return self

    async def __anext__(self) -> T:
        return await self._step()
