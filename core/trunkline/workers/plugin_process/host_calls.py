"""What a tool that runs apart wants of others: each wish travels with the call's replies, and comes back answered."""

from collections.abc import Awaitable, Callable

import anyio

from trunkline.contracts.plugins.messages import MemoryAnswer, MemoryWish, ModelWish, ProgramWish

Wish = MemoryWish | ModelWish | ProgramWish


class Wishes:
    """The wishes of one call, sent by ``send``."""

    def __init__(self, send: Callable[[Wish], Awaitable[None]]) -> None:
        self._send = send
        self._count = 0
        self._waiting: dict[int, _Question] = {}

    async def ask(self, made: Callable[[int], Wish]) -> MemoryAnswer:
        """Send the wish that is made with a number of its own, and wait for its answer."""
        self._count += 1
        number, question = self._count, _Question()
        self._waiting[number] = question
        try:
            await self._send(made(number))
            await question.come.wait()
        finally:
            del self._waiting[number]
        assert question.answer is not None
        return question.answer

    def answered(self, answer: MemoryAnswer) -> None:
        """Hand an answer to whoever waits for it."""
        question = self._waiting.get(answer.number)
        if question is not None:
            question.answer = answer
            question.come.set()


class _Question:
    def __init__(self) -> None:
        self.come = anyio.Event()
        self.answer: MemoryAnswer | None = None
