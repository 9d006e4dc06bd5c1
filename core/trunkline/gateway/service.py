"""What the gateway does for everybody alike: take messages in, cancel, say where a turn stands.

A message is accepted when the inbox has it on disk. The bus endpoints and the HTTP surface both end here.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trunkline.abc.gateway import AdmissionRule, Identity
from trunkline.errors import ErrorCode
from trunkline.gateway.blocks import Blocks
from trunkline.gateway.conversations import Conversations
from trunkline.gateway.faults import code_of, refusal
from trunkline.gateway.forking import asked_model, check_step, forked
from trunkline.gateway.ids import conversation_id, is_key, message_id, turn_id
from trunkline.gateway.running import Turns, TurnState
from trunkline.gateway.sender import Sender
from trunkline.messages.conversation import Message
from trunkline.messages.gateway import CancelTurn, ForkTurn, MessageAccepted, SendMessage, TurnView
from trunkline.messages.turn import (
    InboxItem,
    TurnCancelRequested,
    TurnRequested,
    TurnSteered,
)
from trunkline.plugins.owned import Owned
from trunkline.subjects import INBOX
from trunkline_bus import Ack, Bus, Refusal, Scope, current_traceparent, link_to, new_id

log = logging.getLogger(__name__)

ACCEPT_SECONDS = 5.0
"""How long the inbox may take to answer before the sender is told that nothing was accepted."""


class Messages:
    """Raises Refusal with a fixed code, and BusError when the bus or memory does not answer."""

    def __init__(
        self,
        bus: Bus,
        turns: Turns,
        conversations: Conversations,
        blocks: Blocks,
        *,
        rules: Iterable[Owned[AdmissionRule]],
        route: Callable[[SendMessage], str | None],
        max_content: int,
    ) -> None:
        self._bus = bus
        self._turns = turns
        self._conversations = conversations
        self._blocks = blocks
        self._rules = tuple(rules)
        self._route = route
        self._max_content = max_content

    async def send(self, message: SendMessage, sender: Sender) -> MessageAccepted:
        """Take a message in. The same client id in the same place is the same turn, however often it comes."""
        self._check(message)
        await self._admit(message, sender.identity)
        into = await self.find(message.steer) if message.steer else None
        if into is not None:
            message = msgspec.structs.replace(message, conversation=into.request.conversation)
        block, conversation = await self._place(message, sender)
        turn = turn_id(conversation, message.client_id or new_id())
        request = _request(message, sender, block, conversation, turn)
        if message.client_id and await self._turns.is_begun(conversation, turn):
            return _accepted(request, duplicate=True)
        if into is not None and request.message.id in {said.id for said in into.said}:
            return msgspec.structs.replace(_accepted(request, duplicate=True), turn=into.request.turn)
        if into is not None and into.finished is None:
            ack = await self._append(TurnSteered(turn=into.request.turn, request=request), request, turn)
            return msgspec.structs.replace(
                _accepted(request, duplicate=ack.duplicate), turn=into.request.turn, otherwise=turn
            )
        ack = await self._append(request, request, turn)
        return _accepted(request, duplicate=ack.duplicate)

    async def cancel(self, request: CancelTurn, sender: Sender) -> None:
        """End a turn; one that has ended stays as it is."""
        state = await self.find(request.turn)
        if state.finished is None:
            item = TurnCancelRequested(turn=request.turn, by=sender.identity.id, mode=request.mode)
            await self._append(item, state.request, new_id())

    async def fork(self, wish: ForkTurn, sender: Sender) -> MessageAccepted:
        """Ask again from a step of a turn, in a new conversation of its block. The turn itself is left as it is."""
        state = await self.find(wish.turn)
        check_step(state, wish)
        origin = state.request
        message = SendMessage(
            content=origin.message.content if wish.content is None else wish.content,
            block=origin.block,
            client_id=f"{wish.turn}@{wish.step} {wish.client_id or new_id()}",
            client_tools=origin.client_tools,
            model=wish.model or asked_model(state),
            max_tokens=origin.max_tokens,
            temperature=origin.temperature,
        )
        if wish.content is not None:
            self._check(message)
        await self._admit(message, sender.identity)
        block, conversation = await self._place(message, sender)
        turn = turn_id(conversation, message.client_id or "")
        request = forked(_request(message, sender, block, conversation, turn), state, wish)
        if await self._turns.is_begun(conversation, turn):
            return _accepted(request, duplicate=True)
        link_to(origin.traceparent)
        ack = await self._append(request, request, turn)
        return _accepted(request, duplicate=ack.duplicate)

    async def turn(self, turn: str) -> TurnView:
        """Where a turn stands."""
        return (await self.find(turn)).view()

    async def find(self, turn: str) -> TurnState:
        """A turn with its journal. Refused with ``not_found``."""
        state = await self._turns.find(turn) if is_key(turn) else None
        if state is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such turn.")
        return state

    def _check(self, message: SendMessage) -> None:
        if len(message.content.encode("utf-8", "replace")) > self._max_content:
            raise refusal(ErrorCode.TOO_LARGE)
        if not message.content.strip() and not _answers_a_tool(message):
            raise refusal(ErrorCode.INVALID_REQUEST, "The message has no content.")

    async def _admit(self, message: SendMessage, identity: Identity) -> None:
        for owned in self._rules:
            try:
                await owned.item(message, identity)
            except Refusal as error:
                code = code_of(error.code)
                raise Refusal(
                    ErrorCode.FORBIDDEN if code is ErrorCode.INTERNAL else code, error.message
                ) from error
            except Exception as error:
                log.exception(
                    "the admission rule of plugin %s failed, so the message is refused", owned.owner
                )
                raise refusal(ErrorCode.FORBIDDEN) from error

    async def _place(self, message: SendMessage, sender: Sender) -> tuple[str, str]:
        """The block and conversation that a message belongs to."""
        if message.conversation is not None:
            block = await self._conversations.block_of(message.conversation)
            if message.block not in (None, block):
                raise refusal(ErrorCode.CONFLICT, f"The conversation belongs to the block {block!r}.")
            await self._blocks.accept_into(block)
            return block, message.conversation
        block = message.block or self._route(message) or self._blocks.default
        await self._blocks.accept_into(block)
        return block, conversation_id(sender.channel, sender.identity.id, message.client_id)

    async def _append(self, item: InboxItem, about: TurnRequested, msg_id: str) -> Ack:
        scope = Scope(block=about.block, conversation=about.conversation, turn=about.turn)
        return await self._bus.append(
            INBOX,
            item,
            scope=scope,
            msg_id=msg_id,
            timeout=ACCEPT_SECONDS,
            conversation=about.conversation,
        )


def _request(message: SendMessage, sender: Sender, block: str, conversation: str, turn: str) -> TurnRequested:
    first, history = _first_message(message, turn)
    begins = message.conversation is None and message.client_id is None
    if begins and history is None:
        history = ()  # nothing is to be loaded
    return TurnRequested(
        turn=turn,
        block=block,
        conversation=conversation,
        message=first,
        actor=sender.identity.id,
        channel=sender.channel,
        history=history,
        begins=begins,
        client_tools=message.client_tools,
        model=message.model,
        max_tokens=message.max_tokens,
        temperature=message.temperature,
        traceparent=current_traceparent(),
    )


def _answers_a_tool(message: SendMessage) -> bool:
    """Whether a message without content brings the result of a tool that the client ran, as its transcript's end."""
    history = message.history or ()
    return bool(history) and history[-1].role == "tool"


def _first_message(message: SendMessage, turn: str) -> tuple[Message, tuple[Message, ...] | None]:
    """What the turn begins with, and the transcript before it. A tool's result stands in for a person's words."""
    history = message.history
    if history and not message.content.strip():
        return msgspec.structs.replace(history[-1], id=message_id(turn), turn=turn), history[:-1]
    metadata: dict[str, Any] = dict(message.metadata)
    first = Message(id=message_id(turn), role="user", content=message.content, turn=turn, metadata=metadata)
    return first, history


def _accepted(request: TurnRequested, *, duplicate: bool) -> MessageAccepted:
    return MessageAccepted(
        block=request.block,
        conversation=request.conversation,
        turn=request.turn,
        message_id=request.message.id,
        duplicate=duplicate,
    )
