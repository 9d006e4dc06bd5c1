"""A turn that began, as a channel that shows the whole conversation is told of it."""

from dataclasses import dataclass

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.turns.journal_messages import TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline_bus import Bus, BusError, DecodeError
from trunkline_bus.backoff import Backoff

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two attempts to read the journal while the bus does not answer."""


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn and the message that it answers. ``channel`` and ``actor`` are those of the message. ``message`` is None
    if the journal no longer has it.
    """

    conversation: str
    turn: str
    channel: str = ""
    actor: str = ""
    message: Message | None = None


async def read_begun_turn(bus: Bus, conversation: str, turn: str) -> BegunTurn:
    """Return a turn of the journal. While the bus is unreachable this waits."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        try:
            async for stored in bus.history(JOURNAL, conversation=conversation, turn=turn):
                first = stored.data.entries[0] if stored.data.entries else None
                if not isinstance(first, TurnStarted):
                    break
                request = first.request
                return BegunTurn(conversation, turn, request.channel, request.actor, request.message)
        except DecodeError:  # a later version wrote it
            return BegunTurn(conversation, turn)
        except BusError:
            await backoff.sleep()
        else:
            return BegunTurn(conversation, turn)
