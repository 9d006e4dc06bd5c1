"""A fork's transcript: what a turn had before one of its steps, by its journal. Nothing of it is asked or run again."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.turns.messages import Fork, JournalEntry, ModelCallPlanned, TurnRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.workers.monitor.turn import Turn
from trunkline.workers.monitor.turn_messages import new_messages
from trunkline_bus import Bus

LOAD_TIMEOUT = 10.0
"""Seconds to wait for the conversation before the queue tries the turn again."""


class JournalGone(Exception):
    """The journal of the turn that was to be forked is not kept any more."""


async def with_fork_history(bus: Bus, request: TurnRequested, fork: Fork) -> TurnRequested:
    """The request with its history.

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
    return request_with_history(request, fork, (*before, *new_messages(turn, closing=True)))


def turn_before_step(entries: Iterable[JournalEntry], step: int) -> Turn:
    """The turn as it stood before that model call was planned for the first time; at its end when it never was."""
    turn = Turn()
    for entry in entries:
        if isinstance(entry, ModelCallPlanned) and entry.step == step:
            break
        turn.apply(entry)
    return turn


def messages_before_turn(stored: Sequence[Message], request: TurnRequested) -> tuple[Message, ...]:
    """What the conversation held when the turn began.

    That is what comes before its own messages; and if it has none there, because it has not ended or could not be
    stored, what comes before the first that a person wrote later.
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
    """The request that goes on from the transcript: with its own message, else with the transcript's last one."""
    if fork.says:
        return replace(request, history=transcript)
    last = replace(transcript[-1], id=request.message.id, turn=request.turn)
    return replace(request, history=transcript[:-1], message=last)
