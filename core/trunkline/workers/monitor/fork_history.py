"""The transcript of a fork: the messages of a turn before one of its steps, from its journal. Nothing is run
again."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.turns.journal_messages import JournalEntry, ModelCallPlanned
from trunkline.contracts.turns.messages import Fork, TurnRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.workers.monitor.turn import Turn
from trunkline.workers.monitor.turn_messages import new_messages
from trunkline_bus import Bus

LOAD_TIMEOUT = 10.0
"""Seconds to wait for the conversation before the queue tries the turn again."""


class JournalGone(Exception):
    """The journal of the turn to fork is no longer stored."""


async def with_fork_history(
    bus: Bus, request: TurnRequested, fork: Fork
) -> tuple[TurnRequested, SummaryRecord | None]:
    """Return the request with its history, and the summary record that the turn to fork used.

    Raises JournalGone, DecodeError when a later version wrote that journal, and BusError kinds.
    """
    origin = fork.origin
    records = bus.history(JOURNAL, conversation=origin.conversation, turn=origin.turn)
    entries = [entry async for stored in records for entry in stored.data.entries]
    turn = turn_before_step(entries, origin.step)
    if turn.request is None:
        raise JournalGone(f"there is no journal of turn {origin.turn}")
    before: Sequence[Message] | None = turn.request.history
    if before is None:
        query = LoadConversation(block=request.block, conversation=origin.conversation)
        found = await bus.call(LOAD_MESSAGES, query, timeout=LOAD_TIMEOUT, repeatable=True)
        before = messages_before_turn(found.messages, turn.request)
    transcript = (*before, *new_messages(turn, closing=True))
    return request_with_history(request, fork, transcript), turn.summary_record


def turn_before_step(entries: Iterable[JournalEntry], step: int) -> Turn:
    """Return the turn's state before that model call was first planned; its final state when it never was."""
    turn = Turn()
    for entry in entries:
        if isinstance(entry, ModelCallPlanned) and entry.step == step:
            break
        turn.apply(entry)
    return turn


def messages_before_turn(stored: Sequence[Message], request: TurnRequested) -> tuple[Message, ...]:
    """Return the messages that the conversation had when the turn began.

    These are the messages before the turn's own. A turn that has not ended or was not stored has none; then
    they are the messages before the first later user message.
    """
    own = [number for number, message in enumerate(stored) if message.turn == request.turn]
    written = request.message.created_at
    later = [
        number
        for number, message in enumerate(stored)
        if message.role == "user" and message.created_at > written
    ]
    return tuple(stored[: min(own or later, default=len(stored))])


def request_with_history(
    request: TurnRequested, fork: Fork, transcript: tuple[Message, ...]
) -> TurnRequested:
    """Return the request that continues the transcript: with its own message, else with the transcript's last one. At
    step 0 its own message replaces that of the person, which is the last one there."""
    if fork.says:
        replaces = fork.origin.step == 0 and transcript and transcript[-1].role == "user"
        return replace(request, history=transcript[:-1] if replaces else transcript)
    last = replace(transcript[-1], id=request.message.id, turn=request.turn)
    return replace(request, history=transcript[:-1], message=last)
