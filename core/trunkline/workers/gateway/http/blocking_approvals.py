"""The approvals that block a message: the approvals of an earlier turn in the same conversation.

A queued turn has no events before it starts, which may take hours. So a client that watches the turn receives the
blocking approval and the path to decide it, when the turn has had no event for a short time.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import anyio

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_events import approval_requested
from trunkline.contracts.turns.feed_messages import ApprovalRequested
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.turns.journal_messages import ApprovalAsked
from trunkline.workers.gateway.http.app_state import AppState
from trunkline.workers.gateway.queue_head import QueueHead, QueueHeadCache
from trunkline.workers.gateway.turn_lookup import TurnState
from trunkline_bus import BusError
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_CHECK, LONGEST_PAUSE = 0.25, 2.0
"""Seconds before the first check for a blocking approval, and the longest pause between two checks."""


class BlockingApproval(ApprovalRequested, frozen=True, kw_only=True, tag="question"):
    """An approval of another turn."""

    turn: str

    @property
    def path(self) -> str:
        """The path under which the approval is decided."""
        return f"/api/turns/{self.turn}/calls/{self.call.id}/decision"


async def watch_blocking_approvals(
    parts: AppState, watch: FeedReader, accepted: MessageAccepted
) -> AsyncGenerator[BlockingApproval, None]:
    """Yield the approvals that block the turn, each once, until the turn has an event or is first in its
    conversation."""
    start, backoff = watch.position, Backoff(FIRST_CHECK, LONGEST_PAUSE)
    reported: set[object] = set()
    while True:
        await anyio.sleep(parts.poll_limiter.interval(backoff.advance()))
        if watch.position != start:
            return
        first = await _queue_head(parts.services.queue_heads, accepted)
        if first.turn == accepted.turn:
            return
        for question in _open_approvals(first.parked) if first.parked is not None else ():
            key = (question.turn, question.call.id, question.asked_at)
            if key not in reported:
                reported.add(key)
                yield question


async def _queue_head(queue_heads: QueueHeadCache, accepted: MessageAccepted) -> QueueHead:
    """Return the first turn of the message's conversation; an empty one when the bus does not answer."""
    try:
        return await queue_heads.get(accepted.conversation)
    except BusError as error:
        log.debug("the approval that blocks %s cannot be looked up: %s", accepted.turn, error)
        return QueueHead("", None)


def _open_approvals(state: TurnState) -> list[BlockingApproval]:
    if state.view().status != "parked":
        return []
    turn, calls = state.request.turn, {e.call_id for e in state.entries if isinstance(e, ApprovalAsked)}
    found = []
    for id in sorted(calls):
        call, asked = state.call(id), state.question(id)
        if call is not None and asked is not None and state.decision(id) is None:
            shown = approval_requested(turn, call, asked)
            fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
            found.append(BlockingApproval(turn=turn, **fields))
    return found


async def answer_unless_blocked(
    answer: Awaitable[T],
    questions: AsyncGenerator[BlockingApproval, None],
    blocked: Callable[[BlockingApproval], Awaitable[T]],
) -> T:
    """Return the answer, or what ``blocked`` returns for the first approval that blocks the turn: a client that waits
    for one reply cannot wait as long as a person may."""
    found: list[T | Exception] = []

    async def wait(first: Awaitable[T]) -> None:
        try:
            found.append(await first)
        except Exception as error:  # raised again below, bare: the group would wrap it
            found.append(error)
        tasks.cancel_scope.cancel()

    async def waiting() -> None:
        async with aclosing(questions):
            async for question in questions:
                await wait(blocked(question))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting)
        await wait(answer)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def approval_text(event: ApprovalRequested) -> str:
    """Return an approval as text, for clients that do not support approvals."""
    is_question = isinstance(event.detail, ApprovalDetail) and event.detail.is_question
    what, do, verb = ("an answer", "Answer", "answer") if is_question else ("approval", "Decide", "approve")
    how = f" (trunkline approvals {verb} {event.id})" if isinstance(event.id, str) else ""
    who = "This message is behind another, which waits" if isinstance(event, BlockingApproval) else "Waiting"
    return (
        f"[{who} for {what}: {event.question} {do} in another channel{how}.]\n"
        f"{event.detail.text if isinstance(event.detail, ApprovalDetail) else ''}"
    ).rstrip()
