"""What a tool that runs apart wants of others: each wish travels with the call's replies, and comes back answered."""

from collections.abc import Awaitable, Callable

import anyio

from trunkline.contracts.plugins.messages import HostCallReply, MemoryHostCall, ModelHostCall, SandboxHostCall

HostCall = MemoryHostCall | ModelHostCall | SandboxHostCall


class HostCallClient:
    """The wishes of one call, sent by ``send``."""

    def __init__(self, send: Callable[[HostCall], Awaitable[None]]) -> None:
        self._send = send
        self._count = 0
        self._waiting: dict[int, _PendingCall] = {}

    async def call(self, made: Callable[[int], HostCall]) -> HostCallReply:
        """Send the wish that is made with a number of its own, and wait for its answer."""
        self._count += 1
        number, question = self._count, _PendingCall()
        self._waiting[number] = question
        try:
            await self._send(made(number))
            await question.come.wait()
        finally:
            del self._waiting[number]
        assert question.answer is not None
        return question.answer

    def deliver(self, answer: HostCallReply) -> None:
        """Hand an answer to whoever waits for it."""
        question = self._waiting.get(answer.number)
        if question is not None:
            question.answer = answer
            question.come.set()


class _PendingCall:
    def __init__(self) -> None:
        self.come = anyio.Event()
        self.answer: HostCallReply | None = None
