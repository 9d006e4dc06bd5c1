"""Host calls of an isolated plugin's tool. A host call is sent among the replies of the tool call; its answer arrives
as a request.
"""

from collections.abc import Awaitable, Callable

import anyio

from trunkline.contracts.plugins.messages import HostCallReply, MemoryHostCall, ModelHostCall, SandboxHostCall

HostCall = MemoryHostCall | ModelHostCall | SandboxHostCall


class HostCallClient:
    """The host calls of one tool call, sent through ``send``."""

    def __init__(self, send: Callable[[HostCall], Awaitable[None]]) -> None:
        self._send = send
        self._count = 0
        self._waiting: dict[int, _PendingCall] = {}

    async def call(self, build: Callable[[int], HostCall]) -> HostCallReply:
        """Send the host call that ``build`` returns for a unique number, and wait for the answer."""
        self._count += 1
        number, pending = self._count, _PendingCall()
        self._waiting[number] = pending
        try:
            await self._send(build(number))
            await pending.answered.wait()
        finally:
            del self._waiting[number]
        assert pending.answer is not None
        return pending.answer

    def deliver(self, answer: HostCallReply) -> None:
        """Pass an answer to the host call that waits for it."""
        pending = self._waiting.get(answer.number)
        if pending is not None:
            pending.answer = answer
            pending.answered.set()


class _PendingCall:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.answer: HostCallReply | None = None
