"""Reads finished turns from the stored conversation, and from the journal what the conversation does not hold."""

import logging
from collections.abc import Sequence

import msgspec

from trunkline import Message
from trunkline.api.bus import Bus, DecodeError
from trunkline.api.gateway import LOAD_MESSAGES
from trunkline.api.memory import CALL_SECONDS, ConversationSlice, LoadConversation
from trunkline.api.turn import JOURNAL, JournalEntry, TurnFact, TurnFinished, TurnStarted
from trunkline_learning.fact_selection import parse_fact_texts
from trunkline_learning.strategy_selection import parse_strategy_ids
from trunkline_learning.turns import FinishedTurn, Provenance, ToolUse, person_behind

log = logging.getLogger(__name__)

MAX_MESSAGES_BACK = 200
"""The number of a conversation's last messages that are read. Earlier messages can complete what a turn teaches."""

BEYOND = 2**31


class TurnPair(msgspec.Struct, frozen=True):
    """A turn that ended, and the one before it in its conversation, if any."""

    turn: FinishedTurn
    before: FinishedTurn | None = None


class TurnReader:
    """Reads what a turn said and did."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def read(self, fact: TurnFact) -> TurnPair | None:
        """The turn that a fact tells of; None when its conversation is gone, or is a client's single request. Raises
        BusError when nobody answers."""
        messages = await self._messages(fact.block, fact.conversation)
        mine = [message for message in messages if message.turn == fact.turn]
        if not mine:
            return None
        older = [message for message in messages[: messages.index(mine[0])] if message.turn]
        turn = await self._turn(fact.block, fact.conversation, mine)
        if not older:
            return TurnPair(turn)
        theirs = [message for message in older if message.turn == older[-1].turn]
        return TurnPair(turn, await self._turn(fact.block, fact.conversation, theirs))

    async def _messages(self, block: str, conversation: str) -> Sequence[Message]:
        """The last messages; of a long conversation not the whole."""
        end = await self._load(block, conversation, BEYOND)
        if end.summary is not None and end.summary.one_shot:
            return ()
        return (await self._load(block, conversation, max(0, end.count - MAX_MESSAGES_BACK))).messages

    async def _load(self, block: str, conversation: str, after: int) -> ConversationSlice:
        request = LoadConversation(block=block, conversation=conversation, after=after)
        return await self._bus.call(LOAD_MESSAGES, request, timeout=CALL_SECONDS, repeatable=True)

    async def _turn(self, block: str, conversation: str, messages: Sequence[Message]) -> FinishedTurn:
        turn = messages[0].turn or ""
        started, finished = await self._read_journal(conversation, turn)
        said = tuple(message for message in messages if message.role == "user")
        if (
            not said and started is not None
        ):  # so long a turn that its question is not among the last messages
            said = (started.request.message,)
        answers = [message for message in messages if message.role == "assistant" and message.content.strip()]
        context = "\n".join(message.content for message in started.context) if started else ""
        last = answers[-1] if answers else None
        return FinishedTurn(
            source=Provenance(
                block=block,
                conversation=conversation,
                turn=turn,
                message=last.id if last is not None else "",
                person=person_behind(started.request.actor) if started is not None else "",
            ),
            model=started.model if started is not None else "",
            messages=said,
            answer=last.content if last is not None else "",
            tools=tuple(
                ToolUse(
                    name=message.name or "",
                    failed=message.error,
                    kind=message.error_kind,
                    output=message.content[:1_000],
                )
                for message in messages
                if message.role == "tool"
            ),
            strategies=parse_strategy_ids(context),
            facts=parse_fact_texts(context),
            by_person=started is not None and started.request.trigger == "message",
            reason=finished.reason if finished is not None else "stop",
            at=messages[-1].created_at,
        )

    async def _read_journal(
        self, conversation: str, turn: str
    ) -> tuple[TurnStarted | None, TurnFinished | None]:
        """Return the start and the end of the turn, as far as the journal still has them and this version can read
        them."""
        entries: list[JournalEntry] = []
        try:
            async for stored in self._bus.history(JOURNAL, conversation=conversation, turn=turn):
                entries.extend(stored.data.entries)
        except DecodeError as error:
            log.info("the journal of turn %s cannot be read to its end: %s", turn, error)
        started = next((entry for entry in entries if isinstance(entry, TurnStarted)), None)
        return started, next((entry for entry in entries if isinstance(entry, TurnFinished)), None)
