"""The registration of memory's endpoints on a service, separately for reading and for changing operations."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.write_check import WriteCheck
from trunkline_bus import Refusal, Request, Scope, Service

Q = TypeVar("Q")
A = TypeVar("A")


class EndpointRegistry:
    """Registers the endpoints of ``service``. ``publisher`` publishes changes; ``writes`` records which changes
    failed.
    """

    def __init__(self, service: Service, publisher: ChangePublisher, writes: WriteCheck) -> None:
        self._service = service
        self._publisher = publisher
        self._writes = writes
        self._registered: set[str] = set()

    async def add(
        self, operation: MemoryOperation[Q, A], handler: Callable[[Request[Q]], Awaitable[A]]
    ) -> None:
        """Serve an operation, with at most ``operation.concurrency`` requests at once.

        The changes of an operation are published before the caller gets the reply, so that every subscriber knows them
        before the caller's next request.
        """

        async def commit(request: Request[Q]) -> A:
            try:
                changed = await handler(request)
                self._writes.note("")
                return changed
            except Refusal as refusal:
                if refusal.code == "write_failure":
                    self._writes.note(refusal.message)
                raise
            finally:
                await self._publisher.publish_pending()

        self._registered.add(operation.name)
        answer = commit if operation.changes else handler
        await self._service.add(operation, answer, limit=operation.concurrency)

    async def add_stream(
        self, operation: MemoryOperation[Q, A], handler: Callable[[Request[Q]], AsyncIterator[A]]
    ) -> None:
        """Serve an operation that has several replies."""
        self._registered.add(operation.name)
        await self._service.add(operation, handler, limit=operation.concurrency)

    def check_complete(self, operations: Iterable[MemoryOperation[Any, Any]]) -> None:
        """Raise RuntimeError if an operation has no handler, because its callers would get no reply."""
        missing = sorted({one.name for one in operations} - self._registered)
        if missing:
            raise RuntimeError(f"no handler serves {', '.join(missing)}")


def scope_of(request: Request[Any]) -> Scope:
    """Return the scope of a change, which is the scope of the request's envelope."""
    envelope = request.envelope
    return Scope(block=envelope.block, conversation=envelope.conversation, turn=envelope.turn)
