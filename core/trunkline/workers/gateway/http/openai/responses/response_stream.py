"""A response as events while its turn runs, for server-sent events and for WebSockets."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import HTTPConnection

from trunkline.contracts.turns.feed_messages import ApprovalRequested, FeedEvent, TurnEnded
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.blocking_approvals import BlockingApproval, approval_text
from trunkline.workers.gateway.http.openai.responses.response_builder import ResponseBuilder
from trunkline.workers.gateway.http.openai.responses.response_events import ErrorEvent, ResponseEvent
from trunkline.workers.gateway.http.openai.responses.response_turns import AcceptedResponse
from trunkline.workers.gateway.http.openai.schemas import error_object
from trunkline.workers.gateway.http.responses import error_code_for
from trunkline.workers.gateway.queue_limiter import QueueFull

Events = list[ResponseEvent]


class ResponseStream:
    """The events of one response. Each group of events is sent before the next one is made.

    ``record`` stores the transcript for clients that send it back. Events up to the number ``after`` are left out.
    """

    def __init__(
        self,
        builder: ResponseBuilder,
        watch: FeedReader,
        accepted: AcceptedResponse | None = None,
        *,
        after: int = -1,
    ) -> None:
        self._builder = builder
        self._watch = watch
        self._accepted = accepted
        self._after = after

    async def events(self, connection: HTTPConnection) -> AsyncGenerator[Events, None]:
        """Yield the events of the turn until its end. A failure ends them with an ``error`` event."""
        try:
            yield self._new(list(self._builder.begin()))
            async with aclosing(self._watch.events()) as events:
                async for event in events:
                    if isinstance(event, TurnEnded):
                        self._builder.completed_at = int(time.time())
                    found = list(self._builder.add(event))
                    await self._record(event)
                    yield self._new(found)
        except Exception as error:
            yield [self._error(connection, error)]

    async def blocking_events(
        self, questions: AsyncGenerator[BlockingApproval, None]
    ) -> AsyncGenerator[Events, None]:
        """Yield the events that show the approvals that block the turn."""
        async with aclosing(questions):
            async for question in questions:
                found = list(self._builder.say(approval_text(question)))
                await self._record(question)
                yield found

    async def _record(self, event: FeedEvent) -> None:
        """Record the transcript at the end, and when the turn waits: the client may leave before the end."""
        if self._accepted is not None and isinstance(event, TurnEnded | ApprovalRequested):
            await self._accepted.record(self._builder)

    def _new(self, events: Events) -> Events:
        return [event for event in events if event.sequence_number > self._after]

    def _error(self, connection: HTTPConnection, error: Exception) -> ErrorEvent:
        wrong = error if isinstance(error, InvalidField | QueueFull) else None
        detail = error_object(error_code_for(connection, error), wrong=wrong).error
        number = max(self._builder.next_number, self._after + 1)
        return ErrorEvent(
            sequence_number=number,
            code=detail.code,
            message=detail.message,
            param=detail.param,
            error=detail,
        )
