"""The chat session: the person's block and conversation, and the handling of each line that they enter.

Knows the gateway and a screen, and nothing of keys, pipes or colours.
"""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio

from trunkline import Block, Message, RemoteFault, TrunklineError, new_id
from trunkline.api.channel import (
    CHAT_KEY,
    AdapterListing,
    Answerer,
    ApprovalDecision,
    Gateway,
    TerminalSession,
    approval_news,
    describe_speaker,
    submit_decision,
    waiting_approval,
)
from trunkline.api.costs import describe_budget_event
from trunkline.api.gateway import ConversationView, MessageAccepted, SendMessage
from trunkline_terminal import commands, text_format
from trunkline_terminal.message_files import MessageFiles
from trunkline_terminal.message_queue import QueuedMessages
from trunkline_terminal.model_parameters import with_parameters
from trunkline_terminal.outage_notice import OutageNotice
from trunkline_terminal.screen import Screen
from trunkline_terminal.session_status import SessionStatus
from trunkline_terminal.tasks_pane import TasksPane
from trunkline_terminal.turn_display import Render, TurnRef
from trunkline_terminal.turn_queue import TurnQueue

MAX_SHOWN_MESSAGES = 6
"""Messages of a conversation that are shown when it is resumed."""


@dataclass(slots=True)
class ChatLocation:
    """The person's block and conversation. With a ``conversation`` of None the next message begins a new one.

    ``loaded`` are messages of a saved conversation that the platform does not hold yet.
    """

    block: str | None
    conversation: str | None = None
    title: str = ""
    loaded: tuple[Message, ...] = ()
    model: str | None = None
    """The model that was chosen before the conversation began, until it begins."""


class ChatSession:
    """A person's chat session at a screen."""

    def __init__(
        self,
        gateway: Gateway,
        screen: Screen,
        session: TerminalSession,
        render: Render = None,
        home: Path | None = None,
        *,
        mentions: bool = True,
    ) -> None:
        self.gateway, self.screen, self.terminal_session = gateway, screen, session
        self.outage = OutageNotice(screen, self.show_status)
        self.turns = TurnQueue(gateway, screen, self.outage, render, attached=session.attached)
        self.place = ChatLocation(session.block)
        self.blocks: tuple[Block, ...] = ()
        self.state = SessionStatus(self)
        self.queue = QueuedMessages(self)
        self.files = MessageFiles(mentions=mentions)
        self.tasks = TasksPane(screen, home)
        self.parameters: Mapping[str, Any] = {}
        """The parameters of the model that the person set for this session."""
        self.models: tuple[str, ...] = ()
        """The names of the models that can be asked, as far as they were listed in this session."""
        self.listed: tuple[str, ...] = ()
        """The conversations that ``/conversations`` listed last."""
        self.failed = False
        self._handing_in: anyio.CancelScope | None = None
        self._name = new_id("terminal")
        """What the messages of this session say about where they were written."""
        self._seen = ""
        """The last turn of the conversation that was shown when it was resumed."""
        self._moved = anyio.Event()
        """Set when the person goes to another conversation."""

    # Beginning -----------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Find the block or take up the conversation. Raises TrunklineError or RemoteFault when there is none."""
        await self.refresh_blocks()
        if self.place.block is not None:
            self.block_named(self.place.block)
        if self.terminal_session.conversation is not None:
            await self.resume(self.terminal_session.conversation)
        await self.state.load()
        if line := text_format.answerer_line(self.answerer):
            self.screen.note(line, "warning" if self.answerer.problem else "dim")

    @property
    def answerer(self) -> Answerer:
        """The model that answers the next message, as far as it is known."""
        return self.state.answerer

    def show_status(self) -> None:
        """Show where the person is."""
        self.state.show()

    async def run_command(self, *arguments: str) -> str:
        """Run a command of ``trunkline`` and return what it prints. Raises TrunklineError if it fails or cannot be run
        here."""
        if self.terminal_session.run_command is None:
            raise TrunklineError(
                "This channel cannot run commands of trunkline.",
                hint=f"In a shell: trunkline {' '.join(arguments)}",
            )
        return await self.terminal_session.run_command(arguments)

    async def current_block(self) -> str:
        """The block where the person is: before the first message the one that would take it. Raises TrunklineError if
        it is not known."""
        if self.place.block is not None:
            return self.place.block
        blocks = await self.refresh_blocks()
        if len(blocks) == 1:
            return blocks[0].name
        raise TrunklineError("No block is chosen yet.", hint="/switch BLOCK chooses one.")

    async def enter_block(self, name: str) -> None:
        """Go to a block; the next message begins a conversation there. Raises TrunklineError if there is none."""
        await self.refresh_blocks()
        self.place = ChatLocation(self.block_named(name).name)
        await self.state.load()

    async def choose_model(self, model: str | None) -> None:
        """Choose the model of this conversation, or of the one that the next message begins. Raises RemoteFault for a
        model that cannot be had."""
        place = self.place
        answerer = await self.outage.retry(lambda: self.gateway.choose_model(place.conversation, model))
        if place.conversation is None:
            place.model = answerer.label if model is not None else None
        await self.state.load()

    async def load_models(self) -> tuple[AdapterListing, ...]:
        """Ask for the models that can be chosen, and remember their names for completion."""
        listings = await self.outage.retry(self.gateway.models)
        self.models = tuple(name for listing in listings for name in listing.names)
        return listings

    async def refresh_blocks(self) -> tuple[Block, ...]:
        """The blocks as they are now."""
        self.blocks = await self.outage.retry(self.gateway.blocks)
        return self.blocks

    def block_named(self, name: str) -> Block:
        """The block by that name, as far as is known here. Raises TrunklineError with the nearest name."""
        for block in self.blocks:
            if block.name == name:
                return block
        near = commands.nearest_word(name, [block.name for block in self.blocks])
        hint = f"Did you mean {near}?" if near else "`trunkline blocks create NAME` makes one."
        raise TrunklineError(f"There is no block {name!r}.", hint=hint)

    async def resume(self, conversation: str) -> None:
        """Resume a conversation: show its last messages, and its running turn from the start. Its tool results can be
        shown again."""
        view = await self.view(conversation, include_tools=True)
        summary = view.summary
        self.place = ChatLocation(summary.block, summary.id, summary.title or "")
        self._show_recent(view)
        ended = [one for one in view.messages if view.running is None or one.turn != view.running]
        self._seen = next((one.turn for one in reversed(ended) if one.turn), "")
        self.turns.restore_results(ended)
        if view.running:
            self.turns.follow(TurnRef(summary.id, view.running))

    def _show_recent(self, view: ConversationView) -> None:
        spoken = [
            message for message in view.messages if message.role in ("user", "assistant") and message.content
        ]
        shown = [m for m in spoken if m.role == "user" or m.turn is None or m.turn != view.running]
        for message in shown[-MAX_SHOWN_MESSAGES:]:
            if message.role == "user":
                self.screen.message(message.content)
            else:
                self.screen.answer(message.content)
                self.screen.settle()

    async def view(self, conversation: str, *, include_tools: bool = False) -> ConversationView:
        """A conversation as it stands."""
        return await self.outage.retry(
            lambda: self.gateway.conversation(conversation, include_tools=include_tools)
        )

    # Lines ---------------------------------------------------------------------------------------------------

    async def handle(self, line: str) -> bool:
        """Do what a line asks: a command, or a message to the agent. Returns False when the person leaves."""
        try:
            return await self._handle(line)
        except RemoteFault as fault:
            self._note_refusal(fault.message)
        except TrunklineError as error:
            self._note_refusal(f"{error.sentence} {error.hint}".rstrip())
        finally:
            self._moved.set()
        return True

    async def _handle(self, line: str) -> bool:
        if not line.strip():
            return True
        found = commands.parse(line)
        if isinstance(found, str):
            await self.send(found)
            return True
        return await found.run(self)

    def _note_refusal(self, sentence: str) -> None:
        self.failed = True
        self.screen.note(sentence, "error")

    async def send(self, content: str) -> None:
        """Hand in a message and have its turn shown."""
        place = self.place
        message = SendMessage(
            content=content,
            block=None if place.conversation else place.block,
            conversation=place.conversation,
            client_id=new_id("line"),
            metadata={CHAT_KEY: self._name},
            history=await self._history(),
            model=None if place.conversation else place.model,
        )
        accepted = await self._submit(with_parameters(message, self.parameters))
        if accepted is None:
            return
        place.block, place.conversation = accepted.block, accepted.conversation
        self._follow(accepted, content)
        if place.model is not None:
            model, place.model = place.model, None
            await self.choose_model(model)

    async def steer(self, content: str) -> bool:
        """Hand in a message for the running turn. Returns False when none runs."""
        running = self.turns.running
        if running is None:
            return False
        followed = running.followed
        message = SendMessage(
            content=content,
            conversation=followed.conversation,
            client_id=new_id("line"),
            metadata={CHAT_KEY: self._name},
            steer=followed.turn,
        )
        accepted = await self._submit(message)
        if accepted is not None:
            self._follow(accepted)
        return True

    def _follow(self, accepted: MessageAccepted, content: str = "") -> None:
        self.state.asked = self.answerer.label
        self.turns.follow(TurnRef(accepted.conversation, accepted.turn, accepted.message_id, content=content))
        self.show_status()

    async def _submit(self, message: SendMessage) -> MessageAccepted | None:
        """The acceptance, however long the gateway is away; None when the person gave up waiting. Raises TrunklineError
        if a file of the message cannot be sent."""
        block = self.place.block
        message, names = await self.files.with_files(message, lambda: self.gateway.abilities(block))
        if names:
            self.screen.note(f"With {', '.join(names)}.")
        with anyio.CancelScope() as scope:
            self._handing_in = scope
            try:
                return await self.outage.retry(lambda: self.gateway.send(message))
            finally:
                self._handing_in = None
        self._note_refusal(
            "You stopped waiting. It is not known whether the message was accepted; /status shows it."
        )
        return None

    async def _history(self) -> tuple[Message, ...] | None:
        """Return the messages that the model needs in addition to the platform's: a loaded conversation, until it is
        stored."""
        place = self.place
        if not place.loaded or place.conversation is None:
            return place.loaded or None
        await self.turns.wait_idle()
        stored = (await self.view(place.conversation, include_tools=True)).messages
        if {message.id for message in stored} & {message.id for message in place.loaded}:
            place.loaded = ()
            return None
        return (*place.loaded, *stored)

    # What others say -----------------------------------------------------------------------------------------

    async def follow_others(self) -> None:
        """Show what is said in the conversation through other channels, until cancelled. Without ``attached`` do
        nothing."""
        while self.terminal_session.attached:
            self._moved = anyio.Event()
            conversation = self.place.conversation
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    if conversation is not None:
                        tasks.start_soon(self._follow_others, conversation)
                    while self.place.conversation == conversation:
                        await self._moved.wait()
                        self._moved = anyio.Event()
                    scope.cancel()

    async def _follow_others(self, conversation: str) -> None:
        async with aclosing(self.gateway.turns(conversation, after=self._seen)) as turns:
            async for begun in turns:
                message = begun.message
                own = message is not None and message.metadata.get(CHAT_KEY) == self._name
                speaker = describe_speaker(begun, self.gateway.sentences)
                asked = "" if own or message is None else f"{speaker}: {message.content}"
                self.turns.follow(TurnRef(conversation, begun.turn, message.id if message else "", asked))

    # What waits for a decision -------------------------------------------------------------------------------

    async def show_approvals(self) -> None:
        """Say which calls of other channels' turns wait and what became of them, until cancelled. Those of the turns
        that are shown here ask by themselves, and are only reminded of."""
        async with aclosing(self.gateway.approvals()) as approvals:
            async for approval in approvals:
                shown = self.turns.has_turn(approval.turn)
                if not shown or (approval.reminded_at is not None and approval.settled is None):
                    self.screen.note(
                        approval_news(approval, before="/", say=self.gateway.sentences),
                        "warning" if approval.settled is None else "dim",
                    )

    async def show_budget_events(self) -> None:
        """Say when a budget is used up or was reset, until cancelled."""
        async with aclosing(self.gateway.budget_events()) as events:
            async for event in events:
                self.screen.note(
                    describe_budget_event(event, self.gateway.sentences),
                    "warning" if event.event == "bankrupt" else "dim",
                )

    async def decide(self, verdict: ApprovalDecision) -> None:
        """Allow or deny a call that waits. Raises TrunklineError when there is none, RemoteFault when others were
        first."""
        found = await self.outage.retry(lambda: waiting_approval(self.gateway, verdict.id))
        if found is None:
            raise TrunklineError(
                f"There is no open approval {verdict.id}.", hint="/approvals lists the open ones."
            )
        await self.outage.retry(lambda: submit_decision(self.gateway, found, verdict))

    # Keys ----------------------------------------------------------------------------------------------------

    async def interrupt(self) -> Literal["turn", "sending", "nothing"]:
        """Ctrl-C: end what is under way. Says what that was."""
        if self.turns.running is not None:
            await self.cancel(self.turns.running.followed.turn)
            return "turn"
        if self._handing_in is not None and self.outage.now:
            self._handing_in.cancel()
            return "sending"
        return "nothing"

    async def cancel(self, turn: str) -> None:
        """End a turn now."""
        try:
            await self.outage.retry(lambda: self.gateway.cancel(turn))
        except RemoteFault as fault:
            self.screen.note(f"The turn was not cancelled: {fault.message}", "error")
