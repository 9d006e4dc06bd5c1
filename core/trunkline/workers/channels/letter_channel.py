"""A channel of letters: messages arrive whole and answers are sent whole, as in mail, chat services and folders.

A subclass defines the source of letters and the way to show an answer. LetterChannel guarantees that a letter which is
delivered twice is one message, that a person's letters form one conversation, that letters wait while the gateway is
unavailable, that a repeated step is shown once, and that an approval is shown but never given automatically.
"""

import json
import logging
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from msgspec import UnsetType

from trunkline._util.text import printable
from trunkline.contracts.channels.channel import Channel, Gateway, TurnStream
from trunkline.contracts.conversations.messages import Attachment, DocumentFile
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    MessageSteered,
    TextDelta,
    TextReset,
    ToolEnded,
    TurnEnded,
)
from trunkline.errors import ErrorCode, Unavailable
from trunkline.workers.channels.approval_text import (
    ApprovalDecision,
    approval_news,
    approval_words,
    decision_news,
    parse_decision,
    submit_decision,
    waiting_approval,
)
from trunkline.workers.channels.attached_chats import CHAT_KEY, quote_steering
from trunkline.workers.channels.model_command import parse_model_command, run_model_command
from trunkline_bus import RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

CUT = ("max_tokens", "content_filter")
"""The reasons for the end of an answer that is not complete."""

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two attempts to reach the gateway: doubled each time."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that a person has written.

    ``id`` is the same whenever this letter is delivered again and never that of another letter (a mail's
    message id, an update's number): it is the message's ``client_id``. ``sender`` distinguishes people, each
    of whom has a conversation; ``origin`` is any object that the channel needs to answer.
    """

    id: str
    text: str
    sender: str = ""
    origin: object = None


class LetterChannel(Channel):
    """A channel that takes letters and answers them.

    Guarantees: a letter that is delivered twice is one message. The letters of a sender form one conversation. Letters
    wait while the gateway is unavailable.

    Not guaranteed: that a letter is answered once: after a crash between the answer and its confirmation the letter is
    delivered and answered again.

    Args:
        notes: The file in which the channel stores the conversation of each sender. None keeps them in memory, so that
            all senders begin new conversations when the channel starts.
    """

    def __init__(self, notes: Path | None = None) -> None:
        self._notes = notes
        self._conversations: dict[str, str] = {}
        self._open: set[str] = set()

    @abstractmethod
    def letters(self) -> AsyncGenerator[Letter, None]:
        """Yield letters as they arrive, until cancelled. A letter without an answer must be delivered again after a
        restart; one that is still being answered may be delivered again and is skipped.

        Raises:
            Exception: the channel fails, and is started again as stated for ``Channel.run``.
        """

    @abstractmethod
    async def show(self, letter: Letter, text: str, *, done: bool) -> None:
        """Show a text in reply to a letter.

        Called with ``done`` once, at the end: the letter is then answered and must not be delivered again. Called
        earlier when a person must decide: ``text`` ends with the question, and further calls may follow.

        Raises:
            Exception: the channel fails, and is started again as stated for ``Channel.run``. The letter is not
                answered.
        """

    async def show_answer(
        self, gateway: Gateway, letter: Letter, text: str, files: Sequence[Attachment]
    ) -> None:
        """Show an answer with the files that the agent gives, once, at the end. A channel that can send files overrides
        this method, and gets their content by ``file_contents``. By default ``show`` is called with a text that names
        them. Raises as ``show`` does.
        """
        notes = [gateway.sentences("answer.file", file=file.notice) for file in files]
        await self.show(letter, "\n\n".join(part for part in (text, *notes) if part), done=True)

    def is_owner(self, letter: Letter) -> bool:
        """Report whether the owner wrote this letter, so that it may decide about calls. False unless the channel
        overrides this method, because any sender of a letter could write "approve". Raises nothing.
        """
        return False

    async def run(self, gateway: Gateway) -> None:
        """Send letters one after another, and answer each when its turn ends. Raises what ``letters`` and ``show``
        raise.
        """
        self._recall()
        async with anyio.create_task_group() as tasks, aclosing(self.letters()) as letters:
            tasks.start_soon(self._tell_of_approvals, gateway)
            async for letter in letters:
                if letter.id in self._open:
                    continue
                self._open.add(letter.id)
                verdict = parse_decision(letter.text, say=gateway.sentences)
                if verdict is not None:
                    tasks.start_soon(self._decide, gateway, letter, verdict)
                    continue
                model = parse_model_command(letter.text)
                if model is not None:
                    await self._choose_model(gateway, letter, model)
                    continue
                try:
                    accepted = await self._sent(gateway, letter)
                except RemoteFault as fault:
                    await self._answered(letter, gateway.sentences.translate(fault.message))
                else:
                    tasks.start_soon(self._follow, gateway, letter, accepted)

    async def _sent(self, gateway: Gateway, letter: Letter) -> MessageAccepted:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            known = self._conversations.get(letter.sender)
            try:
                accepted = await gateway.send(
                    SendMessage(content=letter.text, client_id=letter.id, conversation=known)
                )
            except Unavailable:
                await backoff.sleep()
            except RemoteFault as fault:
                if known is None or fault.code != ErrorCode.NOT_FOUND:
                    raise
                del self._conversations[letter.sender]  # the conversation was deleted: begin another one
            else:
                self._remember(letter.sender, accepted.conversation)
                return accepted

    async def _follow(self, gateway: Gateway, letter: Letter, accepted: MessageAccepted) -> None:
        turn_text, backoff = TurnText(say=gateway.sentences), Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        watch = gateway.watch(accepted.conversation, accepted.turn)
        while True:
            try:
                return await self._watched(gateway, watch, letter, turn_text)
            except Unavailable:
                await backoff.sleep()
                watch = gateway.watch(accepted.conversation, accepted.turn, after=watch.position)

    async def _watched(
        self, gateway: Gateway, watch: TurnStream, letter: Letter, turn_text: "TurnText"
    ) -> None:
        async for event in watch:
            turn_text.apply(event, self.render(event) if self.render is not None else None)
            if isinstance(event, ApprovalRequested):
                await self.show(letter, turn_text.text, done=False)
        await self.show_answer(gateway, letter, turn_text.text, turn_text.files)
        self._open.discard(letter.id)

    async def _answered(self, letter: Letter, text: str) -> None:
        await self.show(letter, text, done=True)
        self._open.discard(letter.id)

    # Approvals --------------------------------------------------------------------------------------------------

    async def _tell_of_approvals(self, gateway: Gateway) -> None:
        """Announce every pending approval and its result to the owner. The turn may come from any channel."""
        async with aclosing(gateway.approvals()) as approvals:
            async for approval in approvals:
                try:
                    await self.tell_owner(printable(approval_news(approval, say=gateway.sentences)))
                except Unavailable as unreachable:
                    log.info("approval %s is not shown in %s: %s", approval.id, self.name, unreachable)

    async def _decide(self, gateway: Gateway, letter: Letter, verdict: ApprovalDecision) -> None:
        try:
            said = await self._decided(gateway, letter, verdict)
        except RemoteFault as fault:
            said = gateway.sentences.translate(fault.message)
        await self._answered(letter, said)

    async def _decided(self, gateway: Gateway, letter: Letter, verdict: ApprovalDecision) -> str:
        if not self.is_owner(letter):
            return gateway.sentences("decision.not_here")
        found = await waiting_approval(gateway, verdict.id)
        if found is None:
            return gateway.sentences("decision.unknown", id=verdict.id)
        await submit_decision(gateway, found, verdict)
        return decision_news(found, verdict, gateway.sentences)

    async def _choose_model(self, gateway: Gateway, letter: Letter, name: str) -> None:
        conversation = self._conversations.get(letter.sender)
        if not self.is_owner(letter):
            said = gateway.sentences("model.not_owner")
        elif conversation is None:
            said = gateway.sentences("command.none")
        else:
            try:
                said = await run_model_command(gateway, conversation, name)
            except (RemoteFault, Unavailable) as error:
                said = error.message if isinstance(error, RemoteFault) else error.sentence
        await self._answered(letter, said)

    # Conversations of the senders ------------------------------------------------------------------------------

    def _recall(self) -> None:
        self._open.clear()
        if self._notes is not None and self._notes.exists():
            try:
                self._conversations = dict(json.loads(self._notes.read_bytes()))
            except (ValueError, TypeError) as error:
                log.warning(
                    "%s cannot be read, so all senders begin new conversations: %s", self._notes, error
                )

    def _remember(self, sender: str, conversation: str) -> None:
        """Store the conversation before the next letter is sent; a crash could otherwise put that letter into
        another one."""
        if self._conversations.get(sender) == conversation:
            return
        self._conversations[sender] = conversation
        if self._notes is not None:
            self._notes.parent.mkdir(parents=True, exist_ok=True)
            draft = self._notes.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(self._conversations))
            draft.replace(self._notes)


async def file_contents(gateway: Gateway, files: Sequence[Attachment]) -> list[DocumentFile]:
    """Return files with their content, waiting while no gateway answers. A file that is no longer stored is left out.
    Raises RemoteFault for any other refusal.
    """
    found: list[DocumentFile] = []
    for file in files:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                data = await gateway.file(file)
            except Unavailable:
                await backoff.sleep()
                continue
            except RemoteFault as fault:
                if fault.code != ErrorCode.NOT_FOUND:
                    raise
            else:
                found.append(DocumentFile(media_type=file.media_type, name=file.name, data=data))
            break
    return found


def nothing_said(reason: str, say: Sentences) -> str:
    """Return what stands for an answer without text, by the reason of its end. Raises nothing."""
    return say("answer.stopped" if reason == "cancelled" else "answer.empty")


@dataclass(slots=True)
class TurnText:
    """The text of a turn so far: its steps in order, notices about stored results, and the final line; and the files
    that the agent gives. Messages that were added to the turn are quoted, but not those that were written in ``chat``
    (``AttachedChats.metadata``). ``say`` has the language of what the platform says below.

    Guarantees: the text follows from the events alone, so that a reader that begins anew has the same text.

    Not guaranteed: that a text only grows: a ``TextReset`` removes that of its step.
    """

    steps: dict[int, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    below: list[str] = field(default_factory=list)
    chat: str = ""
    say: Sentences = ENGLISH_SENTENCES
    added: dict[str, tuple[int, str]] = field(default_factory=dict)
    files: tuple[Attachment, ...] = ()

    def apply(self, event: FeedEvent, wording: str | None) -> None:
        """Apply an event; ``wording`` replaces a piece of text when a plugin rewrites it. Raises nothing."""
        match event:
            case TextDelta():
                said = event.text if wording is None else wording
                self.steps[event.step] = self.steps.get(event.step, "") + said
            case TextReset():
                self.steps.pop(event.step, None)
            case ToolEnded():
                if isinstance(event.stored, StoredResult):
                    self.kept[event.call_id] = f"{event.name}: {event.stored.notice}"
                if not isinstance(event.files, UnsetType):
                    self.files = tuple(dict.fromkeys((*self.files, *event.files)))
            case ApprovalRequested():
                self.below = [approval_words(event.question, event.detail, self.say)]
            case ApprovalSettled():
                self.below = []
            case MessageSteered(message=message):
                if not self.chat or message.metadata.get(CHAT_KEY) != self.chat:
                    step = max(self.steps, default=-1)
                    self.added.setdefault(message.id, (step, quote_steering(message, self.say)))
            case TurnEnded():
                note = self.say.translate(event.sentence or "")
                if not note and event.reason in CUT:
                    note = self.say(f"answer.{event.reason}")
                self.below = [note] if note else []

    @property
    def text(self) -> str:
        """The text for the person, without terminal control sequences. Raises nothing."""
        # A message that was added comes after the step in which it arrived.
        parts = [(step, 0, text) for step, text in self.steps.items()]
        parts += [(step, 1 + number, text) for number, (step, text) in enumerate(self.added.values())]
        said = [*(text for _, _, text in sorted(parts)), *self.kept.values(), *self.below]
        return printable("\n\n".join(part for part in said if part))
