"""Where answers are given: the endpoints of a service, apart into those that ask and those that change memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.write_check import WriteCheck
from trunkline_bus import Endpoint, Refusal, Request, Scope, Service

Q = TypeVar("Q")
A = TypeVar("A")

QUERY_LIMIT = 64
CHANGE_LIMIT = 512
"""How many questions are answered, and how many changes may be waiting for their commit, at once."""


class EndpointRegistry:
    """The endpoints of ``service``. ``telling`` tells of changes, ``writes`` learns which of them failed."""

    def __init__(self, service: Service, telling: ChangePublisher, writes: WriteCheck) -> None:
        self._service = service
        self._telling = telling
        self._writes = writes

    async def add_query(
        self,
        endpoint: Endpoint[Q, A],
        answer: Callable[[Request[Q]], Awaitable[A]] | Callable[[Request[Q]], AsyncIterator[A]],
        limit: int = QUERY_LIMIT,
    ) -> None:
        """Answer an endpoint, ``limit`` requests at once."""
        await self._service.add(endpoint, answer, limit=limit)

    async def add_change(
        self,
        endpoint: Endpoint[Q, A],
        change: Callable[[Request[Q]], Awaitable[A]],
        limit: int = CHANGE_LIMIT,
    ) -> None:
        """Answer an endpoint that changes memory. A change is told before its asker is answered, so that what is asked
        next finds it heeded everywhere."""

        async def answer(request: Request[Q]) -> A:
            try:
                changed = await change(request)
                self._writes.note("")
                return changed
            except Refusal as refusal:
                if refusal.code == "write_failure":
                    self._writes.note(refusal.message)
                raise
            finally:
                await self._telling.publish_pending()

        await self._service.add(endpoint, answer, limit=limit)


def scope_of(request: Request[Any]) -> Scope:
    """Where a change belongs: what its request's envelope says."""
    envelope = request.envelope
    return Scope(block=envelope.block, conversation=envelope.conversation, turn=envelope.turn)
