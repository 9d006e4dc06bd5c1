"""The invariants after a run: every accepted message is compared with the journal, the conversation, the effects,
the traces and the views of the clients. Reads only."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

import anyio

from trunkline.contracts.blocks.messages import BlockStatus
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallPlanned,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnRecord,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.contracts.workers.subjects import PULSE_BUCKET, SPANS
from trunkline.telemetry import semconv
from trunkline.testing.platform import PlatformClient
from trunkline_bus import BusError, StoredMessage

from .costs import Bill, judge_costs
from .effects import happened
from .load import Sent
from .model_requests import Given, judge

E = TypeVar("E", bound=JournalEntry)
Sort = Literal["lost", "doubled", "broken"]

NOT_RUN = ("was not run", "nothing was run")
"""What an outcome says that promises that there was no effect."""

QUIET = 60.0
"""Seconds within which the inbox is empty and no block is busy, once nothing happens any more."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept: something lost, something doubled, or another one; ``where``: which turn."""

    sort: Sort
    where: str
    what: str


@dataclass(slots=True)
class Account:
    """The findings. ``requests``: what the vendor got; ``estimated``: those whose cost is an estimate. ``asked``: model
    calls; ``again``: repeated calls; ``judged``: calls whose request was recorded.
    ``decisions``: by people. ``outcomes``: of tool calls, by status."""

    broken: list[Broken] = field(default_factory=list)
    asked: int = 0
    again: int = 0
    judged: int = 0
    decisions: int = 0
    takeovers: int = 0
    effects: int = 0
    requests: int = 0
    estimated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Past:
    """A turn's journal: its entries in order, and the sequence numbers of its first and last record."""

    entries: list[JournalEntry] = field(default_factory=list)
    first: int = 0
    last: int = 0

    def all(self, kind: type[E]) -> list[E]:
        """The entries of a kind."""
        return [entry for entry in self.entries if isinstance(entry, kind)]


class Auditor:
    """Goes through everything that was sent. Call ``audit`` once, when all is quiet.

    ``given`` is what each model call was given, ``bills`` what the vendor bills for it. ``may_refuse``: tools may say
    that they were not run, because the disk was full.
    """

    def __init__(
        self,
        talker: PlatformClient,
        file: Path,
        given: Sequence[Given] = (),
        bills: Sequence[Bill] = (),
        *,
        may_refuse: bool = False,
    ) -> None:
        self._talker = talker
        self._file = file
        self._may_refuse = may_refuse
        self._given = given
        self._bills = bills
        self._account = Account()
        self._traces: dict[str, set[str]] = {}
        self._effects: Counter[str] = Counter()

    async def audit(self, sent: Sequence[Sent]) -> Account:
        """The whole account."""
        self._effects = happened(self._file)
        self._account.effects = self._effects.total()
        await self._check_quiet()
        self._traces = await self._all_traces()
        known = {mark for one in sent for mark in one.request.marks}
        for mark, count in self._effects.items():
            if count > 1 or mark not in known:
                self._say("doubled", mark, f"the effect {mark} happened {count} times")
        conversations: dict[str, list[Sent]] = {}
        for one in sent:
            conversations.setdefault(one.conversation, []).append(one)
        for conversation, turns in conversations.items():
            await self._audit_conversation(conversation, turns)
        await self._check_costs()
        return self._account

    def _say(self, sort: Sort, where: str, what: str) -> None:
        self._account.broken.append(Broken(sort, where, what))

    # The whole ------------------------------------------------------------------------------------------------

    async def _check_quiet(self) -> None:
        inbox: list[str] = []
        busy: list[str] = []
        with anyio.move_on_after(QUIET):
            while True:
                try:
                    inbox = [repr(one.data)[:300] async for one in self._talker.bus.history(INBOX, after=0)]
                    busy = await self._busy()
                    inbox += [
                        f"request {one.data.entry.id}"
                        async for one in self._talker.bus.history(OPENED_REQUEST)
                    ]
                except BusError:
                    inbox = ["the bus does not answer"]
                if not inbox and not busy:
                    return
                await anyio.sleep(0.2)
        for item in inbox:
            self._say("broken", "inbox", f"still there: {item}")
        for item in busy:
            self._say("broken", "pulse", f"still busy: {item}")

    async def _check_costs(self) -> None:
        """Check that the ledger has every request, and no less than the vendor bills."""
        entries = [one.data async for one in self._talker.bus.history(COST)]
        self._account.estimated = sum(entry.estimated for entry in entries)
        self._account.requests = len(self._bills)
        for what in judge_costs(entries, self._bills):
            self._say("lost", "costs", what)

    async def _busy(self) -> list[str]:
        bucket = self._talker.bus.kv(PULSE_BUCKET)
        entries = [await bucket.get(key) for key in await bucket.keys()]
        beats = [entry.value for entry in entries if entry is not None and entry.value is not None]
        return [repr(beat) for beat in beats if stale(beat.pulse)]

    async def _all_traces(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        async for batch in self._talker.bus.history(SPANS, after=0):
            for span in batch.data.spans:
                if turn := span.attributes.get(semconv.TURN):
                    found.setdefault(turn, set()).add(span.trace_id)
        return found

    # A conversation -------------------------------------------------------------------------------------------

    async def _audit_conversation(self, conversation: str, turns: list[Sent]) -> None:
        view = await self._talker.gateway.conversation(conversation, include_tools=True)
        for id, count in Counter(message.id for message in view.messages).items():
            if count > 1:
                self._say("doubled", conversation, f"the message {id} is stored {count} times")
        accepted = [one.turn for one in turns]
        reported = [m.turn for m in view.messages if m.role == "user" and m.turn in accepted]
        order = list(dict.fromkeys(reported))
        if order != [turn for turn in accepted if turn in order]:
            self._say("broken", conversation, f"accepted in the order {accepted}, stored in {order}")
        pasts = await self._journal(conversation)
        self._check_order(conversation, accepted, pasts)
        self._check_given(conversation, view.messages, turns)
        for one in turns:
            messages = [message for message in view.messages if message.turn == one.turn]
            self._audit_turn(one, messages, pasts.get(one.turn, Past()))
            self._check_steered(one, list(view.messages))

    async def _journal(self, conversation: str) -> dict[str, Past]:
        pasts: dict[str, Past] = {}
        stored: StoredMessage[TurnRecord]
        async for stored in self._talker.bus.history(JOURNAL, after=0, conversation=conversation):
            past = pasts.setdefault(stored.data.turn, Past(first=stored.seq))
            past.entries.extend(stored.data.entries)
            past.last = stored.seq
        return pasts

    def _check_order(self, conversation: str, accepted: list[str], pasts: dict[str, Past]) -> None:
        """One turn at a time, in the order of acceptance."""
        spans = [pasts[turn] for turn in accepted if turn in pasts]
        for earlier, later in pairwise(spans):
            if later.first < earlier.last:
                self._say("broken", conversation, f"turns overlap or changed places: {earlier} {later}")

    def _check_given(self, conversation: str, messages: Sequence[Message], turns: Sequence[Sent]) -> None:
        """Check that each model call contains all earlier messages, in their order."""
        judged = judge(self._given, messages)
        self._account.judged += sum(judged.calls.values())
        for what in judged.problems:
            self._say("broken", conversation, what)
        for one in turns:
            if one.request.ending is not None and self._given and not judged.calls[one.turn]:
                self._say("broken", f"{one.request.mark} {one.turn}", "no model call about it was seen")

    # A turn ---------------------------------------------------------------------------------------------------

    def _audit_turn(self, one: Sent, messages: list[Message], past: Past) -> None:
        where = f"{one.request.kind} {one.request.mark} {one.conversation} {one.turn}"
        self._count(past)
        for sort, what in (
            *_ends(past),
            *_reported(one, messages),
            *_answered(one, messages, past),
            *self._reported_effects(one, past),
            *decided(one, past, self._effects[one.request.mark]),
            *self._traced(one, past),
            *_watched(one, messages),
        ):
            self._say(sort, where, what)

    def _count(self, past: Past) -> None:
        planned = [entry.step for entry in past.all(ModelCallPlanned)]
        self._account.asked += len(planned)
        self._account.again += len(planned) - len(set(planned))
        self._account.decisions += len(past.all(ApprovalRecorded))
        self._account.takeovers += len(past.all(TurnResumed))
        self._account.outcomes.update(entry.outcome.status for entry in past.all(ToolFinished))
        self._account.reasons.update(entry.reason for entry in past.all(TurnFinished))

    def _reported_effects(self, one: Sent, past: Past) -> Iterator[tuple[Sort, str]]:
        denied = {entry.call_id for entry in past.all(ApprovalRecorded) if not entry.allow}
        planned = [entry.call for entry in past.all(ToolPlanned)]
        calls = [call for call in planned if call.name in ("transfer", "pay") and call.id not in denied]
        outcomes = {entry.call_id: entry.outcome for entry in past.all(ToolFinished)}
        cancelled = bool(past.all(CancelRecorded))
        for id, mark in {call.id: call.arguments.get("mark", "") for call in calls}.items():
            reported = reported_effect(
                mark, self._effects[mark], outcomes.get(id), cancelled, self._may_refuse
            )
            yield from reported

    def _traced(self, one: Sent, past: Past) -> Iterator[tuple[Sort, str]]:
        for started in past.all(TurnStarted)[:1]:
            parent = started.request.traceparent
            if parent is None:
                yield "broken", "accepted without a trace"
                continue
            strange = self._traces.get(one.turn, set()) - {parent.split("-")[1]}
            if strange:
                yield "broken", f"has spans in other traces than {parent}: {strange}"

    def _check_steered(self, one: Sent, messages: list[Message]) -> None:
        for id in one.steered:
            where = f"steered {one.request.mark} {one.conversation} {one.turn}"
            count = sum(message.id == id for message in messages)
            if count != 1:
                self._say("doubled" if count else "lost", where, f"{id} is stored {count} times")
            text = "\n".join(message.content for message in messages if message.role == "assistant")
            answers = text.count(one.request.steered)
            if answers != 1:
                self._say("doubled" if answers else "lost", where, f"answered {answers} times")


def stale(pulse: BlockStatus) -> bool:
    """Report whether a status names an ended turn: as running, or as failed although another owner continued it."""
    return pulse.status == "BUSY" or pulse.error == "interrupted"


def _ends(past: Past) -> Iterator[tuple[Sort, str]]:
    for kind in (TurnStarted, TurnFinished):
        count = len(past.all(kind))
        if count != 1:
            yield ("doubled" if count else "lost"), f"{count} {kind.__name__} in its journal"
    for end in past.all(TurnFinished):
        if end.reason == "error":
            yield "lost", f"ended with an error: {end}"


def _reported(one: Sent, messages: list[Message]) -> Iterator[tuple[Sort, str]]:
    count = sum(m.role == "user" and m.content == one.request.program for m in messages)
    if count != 1:
        yield ("doubled" if count else "lost"), f"its message is stored {count} times"


def _answered(one: Sent, messages: list[Message], past: Past) -> Iterator[tuple[Sort, str]]:
    answers = [message for message in messages if message.role == "assistant"]
    if not answers and not past.all(CancelRecorded):
        yield "lost", "no answer is stored"
    if one.request.ending is not None:
        text = _text(messages)
        count = text.count(one.request.ending)
        if count != 1 or not text.endswith(one.request.ending):
            yield ("doubled" if count > 1 else "lost"), f"the stored answer is {text[-300:]!r}"
        if one.request.whole is not None and text != one.request.whole:
            yield "broken", f"the stored answer is {text!r}, not {one.request.whole!r}"


def decided(one: Sent, past: Past, count: int) -> Iterator[tuple[Sort, str]]:
    """Return the contradictions between people's decisions about a call and its ``count`` effects."""
    if not one.request.verdicts:
        return
    asked, recorded = len(past.all(ApprovalAsked)), past.all(ApprovalRecorded)
    if asked != 1:
        yield ("doubled" if asked else "lost"), f"people were asked {asked} times"
    if len(recorded) != asked:
        yield "lost", f"of {asked} questions {len(recorded)} are decided"
    verdicts = {entry.allow for entry in recorded}
    if not set(one.granted) <= verdicts or len(verdicts) > 1:
        yield "broken", f"people were told that {one.granted} counts, the journal says {verdicts}"
    if verdicts == {False} and count:
        yield "broken", "it was denied and had its effect"


def reported_effect(
    mark: str, count: int, outcome: ToolOutcome | None, cancelled: bool, may_refuse: bool
) -> Iterator[tuple[Sort, str]]:
    """Return the contradictions between the reports of an effect and its ``count`` occurrences."""
    if outcome is None:
        if not cancelled:
            yield "lost", f"the call for {mark} has no outcome"
    elif outcome.status == "ok" and count == 0:
        yield "lost", f"{mark} is said to be done and is not: {outcome}"
    elif outcome.status == "error" and count and any(text in outcome.output.lower() for text in NOT_RUN):
        yield "broken", f"{mark} is said not to be run and was: {outcome}"
    elif outcome.status == "error" and not (cancelled or may_refuse):
        yield "broken", f"the call for {mark} failed: {outcome}"


def _watched(one: Sent, messages: list[Message]) -> Iterator[tuple[Sort, str]]:
    stored = _text(messages)
    for seen in one.seen:
        for problem in seen.problems:
            yield "broken", f"the {seen.client} client: {problem}"
        if not seen.ended:
            yield "lost", f"the {seen.client} client saw no end; it had {seen.text[-200:]!r}"
        elif seen.text != stored:
            yield "broken", f"the {seen.client} client has {seen.text!r}, stored is {stored!r}"


def _text(messages: list[Message]) -> str:
    return "".join(message.content for message in messages if message.role == "assistant")
