"""Invariants of all messages of the concurrent conversations, checked by the journal and the stored conversations.
Reads only."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from trunkline.contracts.turns.journal_messages import ModelCallPlanned, TurnFinished, TurnRecord, TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.platform import PlatformClient
from trunkline_bus import StoredMessage

from .concurrent_conversations import ConcurrentConversations, SentMessage


@dataclass(slots=True)
class Verdict:
    """``lost``: not answered, or not stored; ``doubled``: answered or stored twice; ``inverted``: answered before an
    earlier message; ``together``: two turns of a conversation at once. ``again``: model calls asked more than once.
    ``changed``: how often a turn changed its monitor; ``gaps``: seconds between the two, by the server's clock.
    """

    turns: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    inverted: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)
    again: int = 0
    changed: int = 0
    gaps: list[float] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """Every promise that was not kept."""
        sorts = ("lost", "doubled", "inverted", "together")
        return [f"{sort}: {what}" for sort in sorts for what in getattr(self, sort)]


@dataclass(slots=True)
class _Past:
    """A conversation's journal so far."""

    begun: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    owners: dict[str, tuple[str, datetime]] = field(default_factory=dict)


async def verdict(talker: PlatformClient, conversations: ConcurrentConversations) -> Verdict:
    """Judge all that was said. Call it when everything is answered."""
    found = await journal_verdict(talker, conversations)
    for conversation, said in conversations.said.items():
        await _stored(talker, conversation, said, found)
    return found


async def journal_verdict(talker: PlatformClient, conversations: ConcurrentConversations) -> Verdict:
    """Judge by the journal alone; while messages are still sent, a turn without an end counts as lost."""
    found = Verdict(turns=len(conversations.everything))
    pasts = {conversation: _Past() for conversation in conversations.said}
    async for record in talker.bus.history(JOURNAL):
        conversation = record.keys["conversation"]
        if conversation in pasts:
            _note(pasts[conversation], record, found)
    for conversation, said in conversations.said.items():
        _compare(pasts[conversation], said, found)
    return found


def _note(past: _Past, record: StoredMessage[TurnRecord], found: Verdict) -> None:
    turn, owner = record.data.turn, record.data.owner
    open_turns = [one for one in past.begun if not past.ended[one] and one != turn]
    if open_turns:
        found.together.append(f"{turn} while {open_turns[0]} ran")
    before = past.owners.get(turn)
    if before is not None and before[0] != owner:
        found.changed += 1
        found.gaps.append((record.time - before[1]).total_seconds())
    past.owners[turn] = (owner, record.time)
    for entry in record.data.entries:
        match entry:
            case TurnStarted():
                past.begun.append(turn)
            case ModelCallPlanned():
                past.asked[turn] += 1
            case TurnFinished():
                past.ended[turn] += 1
            case _:
                pass


def _compare(past: _Past, said: list[SentMessage], found: Verdict) -> None:
    turns = [one.accepted.turn for one in said]
    found.lost += [turn for turn in turns if not past.ended[turn]]
    found.doubled += [turn for turn in turns if past.ended[turn] > 1 or past.begun.count(turn) > 1]
    if past.begun != [turn for turn in turns if turn in past.begun]:
        found.inverted.append(f"{past.begun} instead of {turns}")
    found.again += sum(past.asked[turn] - 1 for turn in turns if past.asked[turn])


async def _stored(talker: PlatformClient, conversation: str, said: list[SentMessage], found: Verdict) -> None:
    view = await talker.gateway.conversation(conversation)
    answers = [
        message.content for message in view.messages if message.role == "assistant" and message.content
    ]
    wanted = [one.mark for one in said]
    found.lost += [f"{mark} is not stored" for mark in wanted if mark not in answers]
    found.doubled += [f"{mark} is stored twice" for mark in set(answers) if answers.count(mark) > 1]
    if answers != [mark for mark in wanted if mark in answers] and len(answers) == len(set(answers)):
        found.inverted.append(f"{conversation} is stored as {answers}")
