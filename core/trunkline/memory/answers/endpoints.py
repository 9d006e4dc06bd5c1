"""Where answers are given: the endpoints of a service, apart into those that ask and those that change memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from trunkline.memory.answers.telling import Telling
from trunkline_bus import Endpoint, Request, Scope, Service

Q = TypeVar("Q")
A = TypeVar("A")

ASKERS = 64
WRITERS = 512
"""How many questions are answered, and how many changes may be waiting for their commit, at once."""


class Endpoints:
    """The endpoints of ``service``. ``telling`` tells of changes."""

    def __init__(self, service: Service, telling: Telling) -> None:
        self._service = service
        self._telling = telling

    async def ask(
        self,
        endpoint: Endpoint[Q, A],
        answer: Callable[[Request[Q]], Awaitable[A]] | Callable[[Request[Q]], AsyncIterator[A]],
        limit: int = ASKERS,
    ) -> None:
        """Answer an endpoint, ``limit`` requests at once."""
        await self._service.add(endpoint, answer, limit=limit)

    async def change(
        self, endpoint: Endpoint[Q, A], change: Callable[[Request[Q]], Awaitable[A]], limit: int = WRITERS
    ) -> None:
        """Answer an endpoint that changes memory. A change is told before its asker is answered, so that what is asked
        next finds it heeded everywhere."""

        async def answer(request: Request[Q]) -> A:
            try:
                return await change(request)
            finally:
                await self._telling.tell()

        await self._service.add(endpoint, answer, limit=limit)


def scope_of(request: Request[Any]) -> Scope:
    """Where a change belongs: what its request's envelope says."""
    envelope = request.envelope
    return Scope(block=envelope.block, conversation=envelope.conversation, turn=envelope.turn)
