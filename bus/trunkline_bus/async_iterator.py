"""An async iterator made of one function. Unlike a generator it survives the cancellation of a step."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class StepIterator(Generic[T]):
    """``await step()`` for each item; ``step`` raises ``StopAsyncIteration`` at the end.

    A timeout around ``anext`` leaves it usable, provided ``step`` itself can be cancelled without loss.
    """

    def __init__(self, step: Callable[[], Awaitable[T]]) -> None:
        self._step = step

    def __aiter__(self) -> "StepIterator[T]":
        return self

    async def __anext__(self) -> T:
        return await self._step()
