"""A gateway in memory that answers by a test's script, for tests of a channel without a platform. Stores nothing on
disk.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.abc
from msgspec import UnsetType
from msgspec.structs import replace

from trunkline.contracts.approvals.messages import (
    Approval,
    ApprovalDetail,
    ApprovalScope,
    Settlement,
    approval_id,
)
from trunkline.contracts.auth.linked_senders import LinkedSender
from trunkline.contracts.blocks.messages import Block, BlockConfig
from trunkline.contracts.channels.records import ChannelRecords
from trunkline.contracts.conversations.messages import (
    Attachment,
    ConversationPage,
    ConversationSummary,
    ListConversations,
    Message,
    ToolCall,
    utc_now,
)
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.report_messages import CostSum, CostTotals, Grouping
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import ConversationView, MessageAccepted, SendMessage, TurnView
from trunkline.contracts.models.abilities_client import ModelAbilities
from trunkline.contracts.models.listing import AdapterListing
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.contracts.turns.begun_turn import BegunTurn
from trunkline.contracts.turns.context_view import ContextView, SentPart
from trunkline.contracts.turns.feed_messages import ApprovalRequested, FeedEvent, TextDelta, TurnEnded
from trunkline.errors import FIXED_SENTENCES, ErrorCode, Unavailable
from trunkline.testing.scripted_abilities import ScriptedAbilities
from trunkline.testing.scripted_records import ScriptedRecords
from trunkline_bus import RemoteFault, new_id

Step = FeedEvent | anyio.Event
"""A step of a turn: an event to show, or an ``anyio.Event`` to wait for."""


def echo(message: SendMessage) -> Iterable[Step]:
    """Return the answer "You said: …"."""
    yield TextDelta(step=0, offset=0, text=f"You said: {message.content}")
    yield TurnEnded(reason="stop")


@dataclass
class _Turn:
    id: str
    message: SendMessage
    conversation: str
    channel: str
    message_id: str
    events: list[FeedEvent] = field(default_factory=list)
    grown: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)

    def add(self, event: FeedEvent) -> None:
        self.events.append(event)
        self.grown.set()
        self.grown = anyio.Event()

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], TurnEnded)


class _Watch:
    def __init__(self, gateway: "ScriptedGateway", turn: _Turn, after: str) -> None:
        self._gateway, self._turn = gateway, turn
        self._next = int(after.partition(".")[2]) + 1 if after else 0
        self.position = after

    def __aiter__(self) -> AsyncIterator[FeedEvent]:
        return self._events()

    async def _events(self) -> AsyncIterator[FeedEvent]:
        while True:
            while self._next < len(self._turn.events):
                self._gateway.raise_if_unavailable()
                event = self._turn.events[self._next]
                self.position = f"0.{self._next}"
                self._next += 1
                yield event
                if isinstance(event, TurnEnded):
                    return
            await self._turn.grown.wait()


class ScriptedGateway:
    """A ``Gateway``. Use it as an asynchronous context manager.

    ``answer`` returns the steps of the turn of a message. ``sent`` are the messages in order, ``cancelled`` the
    cancelled turns, ``decided`` the decisions as (turn, call, allow), ``scopes`` the scope of each decision, and
    ``answers`` the text of each; ``next_decision`` is set when the next decision is made. Only the first decision about
    a call takes effect. ``approvals()`` yields the approvals that ``answer`` requests, and those that
    ``request_approval`` and ``ask_question`` add as if the turn of another channel waited. While ``away`` is true,
    every method raises Unavailable and watches end with it. ``model_abilities`` are those of every block.
    ``channel_records`` are the records of the channel, which outlive it. ``channel`` is the name under which the
    channel's messages arrive. ``files`` are the contents of files by their paths. ``spent`` is what everything cost.
    ``codes`` are the pairing codes that wait, ``offered_codes`` those that the channel passed on, with their senders,
    and ``linked`` the linked senders. ``sentences`` are those of the platform, in English.
    """

    def __init__(
        self, answer: Callable[[SendMessage], Iterable[Step]] = echo, *, blocks: Iterable[str] = ("main",)
    ) -> None:
        self._answer = answer
        self.sentences = Sentences()
        self._blocks = tuple(Block(name=name, config=BlockConfig(), created_at=utc_now()) for name in blocks)
        self._turns: dict[str, _Turn] = {}
        self._by_client: dict[str, MessageAccepted] = {}
        self._conversations: dict[str, tuple[ConversationSummary, list[Message]]] = {}
        self._tasks = anyio.create_task_group()
        self.sent: list[SendMessage] = []
        self.cancelled: list[str] = []
        self.decided: list[tuple[str, str, bool]] = []
        self.scopes: list[ApprovalScope] = []
        self.answers: list[str] = []
        self.next_decision = anyio.Event()
        self.channel = ""
        self._next_turn = anyio.Event()
        self._asked: dict[str, Approval] = {}
        self._news = anyio.Event()
        self.who_answers = Answerer(label="scripted/model", window=8_000)
        self.sent_context = ContextView(
            conversation="", turn="", step=0, model="scripted/model", window=8_000, input_tokens=100,
            parts=(SentPart(kind="message", name="user", tokens=100),),
        )  # fmt: skip
        self.listings: tuple[AdapterListing, ...] = ()
        self.chosen_models: dict[str, str | None] = {}
        self.refuses: RemoteFault | None = None
        self.away = False
        self.model_abilities: ModelAbilities = ScriptedAbilities()
        self.channel_records = ScriptedRecords()
        self.files: dict[str, bytes] = {}
        self.spent = CostTotals(rows=(), total=CostSum(key="total"))
        self.codes: list[str] = []
        self.offered_codes: list[tuple[str, str]] = []
        self.linked: dict[str, LinkedSender] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # re-raises an error of the context unchanged

    def raise_if_unavailable(self) -> None:
        """Raise Unavailable while the gateway is away."""
        if self.away:
            raise Unavailable("No gateway answers.")

    def add_conversation(self, block: str, messages: Iterable[Message], title: str | None = None) -> str:
        """Add a conversation; return its id."""
        conversation, kept = new_id("conv"), list(messages)
        summary = ConversationSummary(
            id=conversation,
            block=block,
            title=title,
            created_at=utc_now(),
            updated_at=utc_now(),
            message_count=len(kept),
        )
        self._conversations[conversation] = (summary, kept)
        return conversation

    async def say_elsewhere(
        self, conversation: str, content: str, *, channel: str = "http"
    ) -> MessageAccepted:
        """Send a message to a conversation as if it came through another channel."""
        return await self._accept(SendMessage(content=content, conversation=conversation), channel)

    def request_approval(
        self, question: str, *, tool: str = "send_mail", detail: str = "to: a@example.org"
    ) -> Approval:
        """Add an approval for which a turn of another channel waits."""
        call = ToolCall(id=new_id("call"), name=tool)
        shown = ApprovalDetail(text=detail, shape="shape", covers=f"{tool} to a@example.org")
        return self._wait("main", "another", new_id("turn"), call, "hash", question, shown)

    def ask_question(self, text: str, *, options: tuple[str, ...] = ()) -> Approval:
        """Add a question for whose answer a turn of another channel waits."""
        call = ToolCall(id=new_id("call"), name="ask_human")
        shown = ApprovalDetail(kind="question", text=text, options=options)
        return self._wait("main", "another", new_id("turn"), call, "hash", "The agent asks you:", shown)

    def settle(self, approval: Approval, *, allow: bool, by: str, answer: str = "") -> None:
        """Settle an approval. ``by`` is the channel that decided, or ``deadline`` if nobody decided in time."""
        self._tell(replace(approval, settled=Settlement(allow=allow, by=by, at=utc_now(), answer=answer)))

    def _wait(
        self, block: str, channel: str, turn: str, call: ToolCall, call_hash: str, question: str,
        detail: ApprovalDetail,
    ) -> Approval:  # fmt: skip
        at = utc_now()
        approval = Approval(
            id=approval_id(turn, call.id, at), turn=turn, call=call.id, call_hash=call_hash, tool=call.name,
            block=block, conversation="conv_other", channel=channel, actor="owner", question=question,
            asked_at=at, expires_at=at + timedelta(minutes=5), detail=detail,
        )  # fmt: skip
        self._tell(approval)
        return approval

    def _tell(self, approval: Approval) -> None:
        self._asked[approval.id] = approval
        self._news.set()
        self._news = anyio.Event()

    # The protocol --------------------------------------------------------------------------------------------

    async def send(self, message: SendMessage) -> MessageAccepted:
        return await self._accept(message, self.channel)

    async def _accept(self, message: SendMessage, channel: str) -> MessageAccepted:
        await self._answering()
        if self.refuses is not None:
            raise self.refuses
        known = self._by_client.get(message.client_id or "")
        if known is not None:
            return known
        self.sent.append(message)
        block = message.block or self._blocks[0].name
        conversation = message.conversation or self.add_conversation(block, message.history or ())
        if conversation not in self._conversations:
            raise _not_found()
        turn = _Turn(new_id("turn"), message, conversation, channel, new_id("msg"))
        accepted = MessageAccepted(
            block=block, conversation=conversation, turn=turn.id, message_id=turn.message_id
        )
        self._turns[turn.id] = turn
        self._next_turn.set()
        self._next_turn = anyio.Event()
        self._by_client[message.client_id or turn.id] = accepted
        self._tasks.start_soon(self._play, turn, accepted)
        return accepted

    def watch(self, conversation: str, turn: str, *, after: str = "") -> _Watch:
        return _Watch(self, self._turn(turn), after)

    async def turns(self, conversation: str, *, after: str | None = None) -> AsyncGenerator[BegunTurn, None]:
        turns = self._turns_of(conversation)
        names = [turn.id for turn in turns]
        if after is None:
            next_one = next((number for number, turn in enumerate(turns) if not turn.ended), len(turns))
        else:
            next_one = names.index(after) + 1 if after in names else 0
        while True:
            news = self._next_turn
            for turn in self._turns_of(conversation)[next_one:]:
                next_one += 1
                said = turn.message
                message = Message(
                    id=turn.message_id,
                    role="user",
                    content=said.content,
                    metadata=said.metadata,
                    turn=turn.id,
                )
                yield BegunTurn(conversation, turn.id, turn.channel, "owner", message)
            await news.wait()

    async def cancel(self, turn: str, *, mode: Literal["now", "after_step"] = "now") -> None:
        await self._answering()
        self._turn(turn).cancelled.set()
        self.cancelled.append(turn)

    async def decide(
        self,
        turn: str,
        call: str,
        call_hash: str,
        *,
        allow: bool,
        scope: ApprovalScope = "once",
        answer: str = "",
    ) -> None:
        await self._answering()
        waiting = [one for one in self._asked.values() if (one.turn, one.call) == (turn, call)]
        if waiting and waiting[0].settled is not None:
            raise RemoteFault(ErrorCode.CONFLICT, f"This was decided by {waiting[0].settled.by} already.")
        self.decided.append((turn, call, allow))
        self.scopes.append(scope)
        self.answers.append(answer)
        for approval in waiting:
            self.settle(approval, allow=allow, by="this channel", answer=answer)
        self.next_decision.set()
        self.next_decision = anyio.Event()

    async def waiting(self) -> tuple[Approval, ...]:
        await self._answering()
        return tuple(one for one in self._asked.values() if one.settled is None)

    async def approvals(self) -> AsyncGenerator[Approval, None]:
        reported: dict[str, Approval] = {}
        while True:
            news = self._news
            for approval in [one for one in self._asked.values() if reported.get(one.id) != one]:
                known = reported.get(approval.id)
                reported[approval.id] = approval
                if known is not None or approval.settled is None:
                    yield approval
            await news.wait()

    async def budget_events(self) -> AsyncGenerator[BudgetEvent, None]:
        await anyio.sleep_forever()
        yield  # type: ignore[misc]  # makes this an asynchronous generator

    async def turn(self, turn: str) -> TurnView:
        await self._answering()
        found = self._turn(turn)
        status: Literal["finished", "running"] = "finished" if found.ended else "running"
        return TurnView(turn=turn, block="main", conversation=found.conversation, status=status)

    async def conversation(self, conversation: str, *, include_tools: bool = False) -> ConversationView:
        await self._answering()
        if conversation not in self._conversations:
            raise _not_found()
        summary, messages = self._conversations[conversation]
        shown = [message for message in messages if include_tools or message.role != "tool"]
        running = next((turn.id for turn in self._turns_of(conversation) if not turn.ended), None)
        return ConversationView(summary=summary, messages=tuple(shown), running=running)

    async def conversations(self, query: ListConversations) -> ConversationPage:
        await self._answering()
        found = tuple(summary for summary, _ in self._conversations.values() if query.admits(summary))
        return ConversationPage(conversations=found, total=len(found))

    async def rename_conversation(self, conversation: str, title: str | None) -> ConversationSummary:
        await self._answering()
        if conversation not in self._conversations:
            raise _not_found()
        summary, messages = self._conversations[conversation]
        self._conversations[conversation] = (replace(summary, title=title), messages)
        return self._conversations[conversation][0]

    async def mark_conversation(
        self, conversation: str, *, pinned: bool | None = None, archived: bool | None = None
    ) -> ConversationSummary:
        await self._answering()
        if conversation not in self._conversations:
            raise _not_found()
        summary, messages = self._conversations[conversation]
        marked = replace(
            summary,
            pinned=summary.pinned if pinned is None else pinned,
            archived=summary.archived if archived is None else archived,
        )
        self._conversations[conversation] = (marked, messages)
        return marked

    async def file(self, file: Attachment) -> bytes:
        await self._answering()
        if file.path not in self.files:
            raise _not_found()
        return self.files[file.path]

    async def context(
        self, conversation: str, turn: str | None = None, *, texts: bool = False
    ) -> ContextView:
        await self._answering()
        if conversation not in self._conversations:
            raise _not_found()
        return replace(self.sent_context, conversation=conversation, turn=turn or "turn_1")

    async def choose_model(self, conversation: str | None, model: str | None) -> Answerer:
        await self._answering()
        if model is not None and model not in (name for one in self.listings for name in one.names):
            raise RemoteFault(ErrorCode.INVALID_REQUEST, f"There is no model {model}.")
        self.chosen_models[conversation or ""] = model
        return await self.answerer(conversation=conversation)

    async def models(self, *, refresh: bool = False) -> tuple[AdapterListing, ...]:
        await self._answering()
        return self.listings

    async def answerer(self, block: str | None = None, *, conversation: str | None = None) -> Answerer:
        await self._answering()
        chosen = self.chosen_models.get(conversation or "")
        return replace(self.who_answers, label=chosen, chosen=True) if chosen else self.who_answers

    async def blocks(self) -> tuple[Block, ...]:
        await self._answering()
        return self._blocks

    async def costs(
        self,
        since: datetime,
        *,
        by: Grouping = "block",
        block: str | None = None,
        conversation: str | None = None,
    ) -> CostTotals:
        await self._answering()
        return self.spent

    async def senders(self) -> tuple[LinkedSender, ...]:
        await self._answering()
        return tuple(self.linked.values())

    async def link_sender(self, code: str, sender: str, place: str, name: str) -> bool:
        await self._answering()
        self.offered_codes.append((code, sender))
        known = self.linked.get(sender)
        if code in self.codes:
            self.codes.remove(code)
            self.linked[sender] = LinkedSender(
                sender=sender, place=place, name=name, linked=utc_now(), by="owner", code=code
            )
            return True
        return known is not None and known.code == code

    def records(self) -> ChannelRecords:
        return self.channel_records

    def abilities(self, block: str | None = None) -> ModelAbilities:
        return self.model_abilities

    # Internals -----------------------------------------------------------------------------------------------

    async def _answering(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.raise_if_unavailable()

    def _turns_of(self, conversation: str) -> list[_Turn]:
        return [turn for turn in self._turns.values() if turn.conversation == conversation]

    def _turn(self, turn: str) -> _Turn:
        if turn not in self._turns:
            raise _not_found()
        return self._turns[turn]

    async def _play(self, turn: _Turn, accepted: MessageAccepted) -> None:
        _, messages = self._conversations[turn.conversation]
        messages.append(
            Message(id=accepted.message_id, role="user", content=turn.message.content, turn=turn.id)
        )
        for step in self._answer(turn.message):
            if isinstance(step, anyio.Event):
                await _either(step, turn.cancelled)
            else:
                turn.add(self._known(step, turn, accepted.block))
            if turn.cancelled.is_set() and not turn.ended:
                turn.add(TurnEnded(reason="cancelled"))
            if turn.ended:
                break
        text = "".join(event.text for event in turn.events if isinstance(event, TextDelta))
        messages.append(Message(id=new_id("msg"), role="assistant", content=text, turn=turn.id))

    def _known(self, event: FeedEvent, turn: _Turn, block: str) -> FeedEvent:
        """Return the event. A request for approval is added to the approvals under the same id."""
        if not isinstance(event, ApprovalRequested):
            return event
        detail = ApprovalDetail() if isinstance(event.detail, UnsetType) else event.detail
        made = self._wait(block, "", turn.id, event.call, event.call_hash, event.question, detail)
        return replace(event, id=made.id, asked_at=made.asked_at, expires_at=made.expires_at)


async def _either(first: anyio.Event, second: anyio.Event) -> None:
    async def wait(event: anyio.Event) -> None:
        await event.wait()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, first)
        tasks.start_soon(wait, second)


def _not_found() -> RemoteFault:
    return RemoteFault(ErrorCode.NOT_FOUND, FIXED_SENTENCES[ErrorCode.NOT_FOUND])
