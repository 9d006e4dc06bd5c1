"""What a message waits for that came behind a turn of its conversation about which a person has to decide.

Its own turn shows nothing before it begins, and that may be hours. So whoever watches it is told which question holds
it up and how that is decided, as soon as nothing has come for a moment.
"""

import logging
from collections.abc import AsyncGenerator

import anyio

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.turns.messages import ApprovalAsked, ApprovalRequested, approval_requested
from trunkline.workers.gateway.http.app_state import AppState
from trunkline.workers.gateway.queue_head import QueueHead, QueueHeadCache
from trunkline.workers.gateway.turn_lookup import TurnState
from trunkline_bus import BusError

log = logging.getLogger(__name__)

FIRST_LOOK, LONGEST_PAUSE = 0.25, 2.0
"""Seconds after which it is looked at what holds a silent turn up, and at most between two looks."""


class BlockingApproval(ApprovalRequested, frozen=True, kw_only=True, tag="question"):
    """A question of another turn."""

    turn: str

    @property
    def path(self) -> str:
        """Where it is decided."""
        return f"/api/turns/{self.turn}/calls/{self.call.id}/decision"


async def watch_blocking_approvals(
    parts: AppState, watch: FeedReader, accepted: MessageAccepted
) -> AsyncGenerator[BlockingApproval, None]:
    """The questions that hold the turn up, each once, until it shows something or is the first in its conversation."""
    begun, pause = watch.position, FIRST_LOOK
    told: set[object] = set()
    while True:
        await anyio.sleep(parts.looks.interval(pause))
        pause = min(2 * pause, LONGEST_PAUSE)
        if watch.position != begun:
            return
        first = await _queue_head(parts.services.ahead, accepted)
        if first.turn == accepted.turn:
            return
        for question in _open_approvals(first.parked) if first.parked is not None else ():
            key = (question.turn, question.call.id, question.asked_at)
            if key not in told:
                told.add(key)
                yield question


async def _queue_head(ahead: QueueHeadCache, accepted: MessageAccepted) -> QueueHead:
    """The first turn of the message's conversation; none when nobody can say."""
    try:
        return await ahead.get(accepted.conversation)
    except BusError as error:
        log.debug("what holds %s up cannot be looked up now: %s", accepted.turn, error)
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


def approval_text(event: ApprovalRequested) -> str:
    """A question as text, for clients that know no approvals."""
    is_question = isinstance(event.detail, ApprovalDetail) and event.detail.is_question
    what, do, verb = ("an answer", "Answer", "answer") if is_question else ("approval", "Decide", "approve")
    how = f" (trunkline approvals {verb} {event.id})" if isinstance(event.id, str) else ""
    who = "This message is behind another, which waits" if isinstance(event, BlockingApproval) else "Waiting"
    return (
        f"[{who} for {what}: {event.question} {do} in another channel{how}.]\n"
        f"{event.detail.text if isinstance(event.detail, ApprovalDetail) else ''}"
    ).rstrip()
