"""Shows turns, one after the other, from their feeds. Knows no commands and no keys."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic

import anyio
import anyio.abc
import msgspec

from trunkline import ApprovalDetail, RemoteFault, Unavailable
from trunkline.api.bus import Backoff
from trunkline.api.channel import ApprovalDecision, Gateway, Sentences, approval_words
from trunkline.api.model import Usage
from trunkline.api.tool import StoredResult
from trunkline.api.turn import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    MessageSteered,
    ReasoningDelta,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
)
from trunkline_terminal import text_format
from trunkline_terminal.outage_notice import FIRST_PAUSE, LONGEST_PAUSE, OutageNotice
from trunkline_terminal.screen import Screen

Render = Callable[[FeedEvent], str | None] | None
"""The plugins' functions that put events into words."""

Results = deque[tuple[str, str]]
"""Results of tools in this conversation, the latest last: the call in words, and the result."""

PROBE_AFTER_SECONDS = 3.0
"""Seconds without an event after which the gateway is asked whether it is still there."""

QUESTION_DELAY = 0.1
"""Seconds to wait before asking: a turn that is read again may bring the decision right behind the question."""


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn to show. ``message`` is the id of the message that began it. ``asked`` quotes that message if it was
    written elsewhere, ``content`` is the message if it was written here and is no part of another turn."""

    conversation: str
    turn: str
    message: str = ""
    asked: str = ""
    content: str = ""


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of showing a turn. ``answered_by`` is the model that answered, "" if none did. ``undecided`` marks a
    turn that waits for the decision of somebody who can be asked."""

    failed: bool
    usage: Usage = Usage()
    context: int = 0
    cost: int | None = None
    answered_by: str = ""
    undecided: bool = False


class TurnDisplay:
    """Shows a turn on a screen. Text is shown once, even when the feed repeats it. A turn that waits for a decision is
    left where nobody can be asked, unless the session is ``attached``."""

    def __init__(
        self, gateway: Gateway, screen: Screen, outage: OutageNotice, followed: TurnRef, render: Render = None,
        results: Results | None = None, *, attached: bool = False,
    ) -> None:  # fmt: skip
        self._gateway, self._screen, self._outage, self.followed = gateway, screen, outage, followed
        self._render, self._results = render, deque() if results is None else results
        self._attached = attached
        self._worded = ""
        self.steered: set[str] = set()
        self._began = self._heard = monotonic()
        self._step = -1
        self._shown: dict[tuple[int, str], int] = {}
        self._tools: dict[str, tuple[str, float]] = {}
        self._asking: dict[str, anyio.CancelScope] = {}
        self._denied: set[str] = set()
        self._wondering: set[str] = set()
        """Calls that wait for an answer and not for a yes."""
        self._questions = anyio.Lock()
        self._outcome = TurnResult(failed=True)

    @property
    def has_open_question(self) -> bool:
        """Report whether a call of the turn waits for the person's decision."""
        return bool(self._asking)

    async def show(self) -> TurnResult:
        """Show the turn until it ends, through every outage."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._probe)
            try:
                await self._follow(tasks)
            except RemoteFault as fault:
                self._screen.settle()
                self._screen.note(f"The turn cannot be shown: {fault.message}", "error")
            tasks.cancel_scope.cancel()
        return self._outcome

    async def _follow(self, tasks: anyio.abc.TaskGroup) -> None:
        position, backoff = "", Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            watch = self._gateway.watch(self.followed.conversation, self.followed.turn, after=position)
            try:
                async for event in watch:
                    self._heard = monotonic()
                    backoff.reset()
                    self._outage.end()
                    if self._show_event(event, tasks):
                        return
            except Unavailable:
                self._outage.begin()
            position = watch.position or position
            await backoff.sleep()

    async def _probe(self) -> None:
        """Ask about the turn while it is silent, so that an outage is seen and said."""
        while True:
            await anyio.sleep(PROBE_AFTER_SECONDS / 3)
            if monotonic() - self._heard > PROBE_AFTER_SECONDS:
                with suppress(RemoteFault):
                    await self._outage.retry(lambda: self._gateway.turn(self.followed.turn))
                self._heard = monotonic()

    def _show_event(self, event: FeedEvent, tasks: anyio.abc.TaskGroup) -> bool:
        """Show one event. Returns whether nothing is left to follow."""
        if self._show_reworded(event):
            return False
        match event:
            case TextDelta():
                self._screen.answer(self._unseen(event, "text"))
            case ReasoningDelta():
                self._screen.reasoning(self._unseen(event, "reasoning"))
            case TextReset():
                self._shown.pop((event.step, "text"), None)
                self._shown.pop((event.step, "reasoning"), None)
                self._screen.reset()
            case ToolStarted():
                self._tool_started(event)
            case ToolProgressed():
                self._tool_progressed(event)
            case ToolEnded():
                self._tool_ended(event)
            case ApprovalRequested():
                self._approval(event, tasks)
            case ApprovalSettled():
                self._settled(event)
            case StatusShown(text=text) if text:
                self._screen.note(text, "plain")
            case MessageSteered():
                self.steered.add(event.message.id)
                # Not settled: the text of the step may go on, in the middle of a block of code.
                self._screen.note(f"↳ added to the turn: {text_format.shorten(event.message.content, 60)}")
            case TurnEnded():
                self._ended(event)
                return True
        return False

    def _show_reworded(self, event: FeedEvent) -> bool:
        """Show what a plugin says for the event, the same words in a row once. Returns whether one did."""
        text = self._render(event) if self._render is not None and isinstance(event, _REWORDED) else None
        if text is None:
            return False
        if isinstance(event, TextDelta):
            self._unseen(event, "text")
            self._screen.answer(text)
        elif text and text != self._worded:
            if not isinstance(event, MessageSteered):
                self._screen.settle()
            self._screen.note(text)
        self._worded = text
        return True

    def _unseen(self, delta: TextDelta | ReasoningDelta, kind: str) -> str:
        if delta.step != self._step:
            self._screen.settle()
            self._step = delta.step
        shown = self._shown.get((delta.step, kind), 0)
        self._shown[delta.step, kind] = max(shown, delta.offset + len(delta.text))
        return delta.text[max(shown - delta.offset, 0) :]

    def _tool_started(self, event: ToolStarted) -> None:
        label = text_format.call_label(event.call)
        self._screen.settle()
        if event.client:
            self._screen.note(f"The model asks for a tool of the client: {label}", "warning")
            return
        self._tools[event.call.id] = (label, monotonic())
        self._screen.tool_started(event.call.id, label)

    def _tool_progressed(self, event: ToolProgressed) -> None:
        lines = [line for line in event.output.splitlines() if line.strip()] or [event.note]
        if event.call_id in self._tools and lines[-1]:
            self._screen.tool_progressed(event.call_id, lines[-1])

    def _tool_ended(self, event: ToolEnded) -> None:
        label, began = self._tools.pop(event.call_id, (event.name, monotonic()))
        self._screen.settle()
        self._results.append((label, event.output))
        self._screen.tool_ended(
            event.call_id, label, failed=event.error, seconds=monotonic() - began,
            output="" if event.call_id in self._denied else event.output,  # who denied it was told already
        )  # fmt: skip
        if isinstance(event.stored, StoredResult):
            self._screen.note(event.stored.notice)
        for file in event.files or ():
            self._screen.note(f"The agent gives you {file.notice}")

    def _approval(self, event: ApprovalRequested, tasks: anyio.abc.TaskGroup) -> None:
        self._screen.settle()
        (self._wondering.add if _is_question(event) else self._wondering.discard)(event.call.id)
        scope = self._asking[event.call.id] = anyio.CancelScope()
        tasks.start_soon(self._ask, event, scope, tasks.cancel_scope)

    async def _ask(
        self, event: ApprovalRequested, scope: anyio.CancelScope, showing: anyio.CancelScope
    ) -> None:
        """Ask the person and hand in what they say. Nothing is ever decided without them."""
        with scope:
            await anyio.sleep(QUESTION_DELAY)
            async with self._questions:
                said = await self._prompt_person(event)
            if said is not None:
                return await self._decide(event, said)
            self._screen.note(
                text_format.decide_elsewhere_text(event, question=_is_question(event)), "warning"
            )
            if not self._attached:  # else the decision is made elsewhere, and the turn goes on here
                self._outcome = TurnResult(failed=True, undecided=True)
                showing.cancel()

    async def _prompt_person(self, event: ApprovalRequested) -> ApprovalDecision | None:
        """Ask the person and return the decision; None where nobody can be asked."""
        id = event.id or event.call.id
        if _is_question(event):
            assert isinstance(event.detail, ApprovalDetail)
            text = await self._screen.ask(
                _question_text(event, self._gateway.sentences),
                text_format.question_prompt(event.detail.options, self._gateway.sentences),
            )
            return None if text is None else ApprovalDecision(id, True, answer=text)
        say = self._gateway.sentences
        question = text_format.approval_prompt(say, wide=_is_wide(event))
        if isinstance(event.detail, ApprovalDetail) and event.detail.kind == "diff":
            question = replace(question, diff=True)
        answer = await self._screen.ask(_question_text(event, say), question)
        if answer is None:
            return None
        return ApprovalDecision(id, answer != "no", "once" if answer == "no" else answer)

    async def _decide(self, event: ApprovalRequested, decision: ApprovalDecision) -> None:
        turn, call = self.followed.turn, event.call.id
        try:
            await self._outage.retry(
                lambda: self._gateway.decide(
                    turn,
                    call,
                    event.call_hash,
                    allow=decision.allow,
                    scope=decision.scope,
                    answer=decision.answer,
                )
            )
        except RemoteFault as fault:
            self._screen.note(f"The decision was not accepted: {fault.message}", "warning")

    def _settled(self, event: ApprovalSettled) -> None:
        if event.call_id in self._tools:
            self._tools[event.call_id] = (self._tools[event.call_id][0], monotonic())
        scope = self._asking.pop(event.call_id, None)
        if scope is not None:
            scope.cancel()
        is_question = event.call_id in self._wondering
        if not (event.allow or is_question):
            self._denied.add(event.call_id)
        self._screen.note(text_format.settlement_text(event, self._gateway.sentences, question=is_question))

    def _ended(self, event: TurnEnded) -> None:
        self._screen.settle()
        for call, (label, began) in self._tools.items():  # a turn that is cancelled says no end of these
            took = monotonic() - began
            self._screen.tool_ended(
                call, label, failed=True, seconds=took, output="The turn ended before it."
            )
        self._tools.clear()
        failed = text_format.is_failed(event)
        if sentence := text_format.ending_text(event, self._gateway.sentences):
            self._screen.note(sentence, "error" if failed else "warning")
        if hint := text_format.ending_hint(event):
            self._screen.note(hint)
        whole = text_format.format_duration(monotonic() - self._began)
        self._screen.note(
            " · ".join(
                filter(
                    None, (text_format.format_usage(event.usage), text_format.format_cost(event.cost), whole)
                )
            )
        )
        self._outcome = TurnResult(
            failed=failed,
            usage=event.usage,
            context=event.context,
            cost=event.cost,
            answered_by=event.answered_by,
        )


def _question_text(event: ApprovalRequested, say: Sentences) -> str:
    """The question with what would be done; of a question without that, the call's arguments."""
    question = say.translate(event.question)
    words_of_it = approval_words(event.question, event.detail, say)
    if words_of_it == question:
        words_of_it = f"{question}\n  {text_format.call_label(event.call, 400)}"
    if not isinstance(event.detail, msgspec.UnsetType) and event.detail.shape:
        words_of_it += (
            f"\n{say('approval.wider', calls=event.detail.covers, **say.words('terminal.words').shown)}"
        )
    if not isinstance(event.expires_at, msgspec.UnsetType):
        late = "terminal.late.question" if _is_question(event) else "terminal.late"
        words_of_it += f"\n{say(late, time=text_format.format_deadline(event.expires_at))}"
    return words_of_it


def _is_question(event: ApprovalRequested) -> bool:
    return isinstance(event.detail, ApprovalDetail) and event.detail.is_question


def _is_wide(event: ApprovalRequested) -> bool:
    return not isinstance(event.detail, msgspec.UnsetType) and bool(event.detail.shape)


_REWORDED = (TextDelta, ReasoningDelta, ToolStarted, ToolEnded, MessageSteered)
"""The events that plugins may put into words. The others control the screen or must be shown as they are."""
