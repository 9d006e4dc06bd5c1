"""The message service: accepts messages, cancels and forks turns, and returns the state of a turn.

A message is accepted when the inbox has stored the message on disk, and refused while that disk is nearly full. The
bus endpoints and the HTTP API both call this service.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import ForkedFrom, Message
from trunkline.contracts.gateway.access import AdmissionRule, Identity
from trunkline.contracts.gateway.messages import (
    MAX_SHOWS,
    CancelTurn,
    ForkTurn,
    MessageAccepted,
    SendMessage,
    TurnView,
)
from trunkline.contracts.turns.messages import (
    Fork,
    InboxItem,
    TurnCancelRequested,
    TurnRequested,
    TurnSteered,
)
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import ErrorCode
from trunkline.plugins.ownership import OwnedItem
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.attachments import AttachmentService
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.conversation_service import ConversationService
from trunkline.workers.gateway.disk_space import BusDiskSpace
from trunkline.workers.gateway.errors import InvalidField, error_code, refusal
from trunkline.workers.gateway.fork_request import build_fork_request, check_step, model_used
from trunkline.workers.gateway.ids import conversation_id, message_id, turn_id
from trunkline.workers.gateway.queue_limiter import QueueFull, QueueLimiter
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import (
    Ack,
    Bus,
    Refusal,
    Scope,
    StorageFull,
    current_traceparent,
    key_of,
    link_span,
    new_id,
)

log = logging.getLogger(__name__)

ACCEPT_SECONDS = 5.0
"""Seconds that the inbox may take to acknowledge a message. After that the reply states that nothing was accepted."""


class MessageService:
    """Accepts messages and commands about turns.

    Methods raise Refusal with a fixed code, and BusError when the bus or memory does not answer.
    """

    def __init__(
        self,
        bus: Bus,
        turns: TurnLookup,
        conversations: ConversationService,
        blocks: BlockService,
        *,
        rules: Iterable[OwnedItem[AdmissionRule]],
        route: Callable[[SendMessage], str | None],
        max_content: int,
        queue: QueueLimiter,
        room: BusDiskSpace,
        attachments: AttachmentService,
        access: BlockAccess,
    ) -> None:
        self._bus = bus
        self._room = room
        self._turns = turns
        self._conversations = conversations
        self._blocks = blocks
        self._admission_rules = tuple(rules)
        self._route = route
        self._max_content = max_content
        self._queue = queue
        self._attachments = attachments
        self._access = access

    async def send(
        self, message: SendMessage, sender: Sender, *, after: ForkedFrom | None = None
    ) -> MessageAccepted:
        """Accept a message. A repeated message with the same client id in the same conversation is the same turn. A
        message for the running turn of somebody else becomes a turn of its own if a policy is about one of the two.

        With ``after``, the conversation begins with the transcript of another one up to that place. Refused when the
        message is empty or too large, when an admission rule denies the message, when the sender may not chat in its
        block, or names a model and may not operate it, when its block or conversation takes no messages, when the
        conversation's queue is full, and while the disk is nearly full.
        """
        self._check(message)
        await self.admit(message, sender.identity)
        into = await self.find(message.steer, sender, TokenScope.CHAT) if message.steer else None
        if into is not None:
            message = msgspec.structs.replace(message, conversation=into.request.conversation)
        block, conversation = await self._resolve_conversation(message, sender)
        await self.check_model_choice(message.model, block, sender)
        turn = turn_id(conversation, message.client_id or new_id())
        request = _request(message, sender, block, conversation, turn)
        if after is not None:
            request = msgspec.structs.replace(request, history=None, fork=Fork(origin=after, says=True))
        if message.client_id and await self._turns.has_journal(conversation, turn):
            return _accepted(request, duplicate=True)
        if into is not None and request.message.id in {said.id for said in into.messages}:
            return msgspec.structs.replace(_accepted(request, duplicate=True), turn=into.request.turn)
        request = await self._attachments.stored(request)
        if (
            into is not None
            and into.finished is None
            and await self._access.may_steer(sender.identity.id, into.request.actor)
        ):
            steered = TurnSteered(turn=into.request.turn, request=request)
            accepted = await self._enqueue(steered, request)
            return msgspec.structs.replace(accepted, turn=into.request.turn, otherwise=turn)
        if message.conversation is not None:
            return await self._enqueue(request, request)
        ack = await self._accept(request, request, turn)
        return _accepted(request, duplicate=ack.duplicate)

    async def start_turn(self, request: TurnRequested) -> None:
        """Put a turn into the inbox that no message of a client began. A repeat, also after the server's window for
        duplicates, is the same turn. Refused as ``send`` for its block and the disk.
        """
        if request.turn not in await self._turns.queued_turns(request.conversation):
            await self._accept(request, request, request.turn)

    async def cancel(self, request: CancelTurn, sender: Sender) -> None:
        """Cancel a turn. A turn that has ended stays as it is. Whoever may chat in a block cancels their own turns,
        and whoever operates it those of others, too. Refused with ``not_found`` and ``forbidden``."""
        state = await self.find(request.turn, sender, TokenScope.CHAT)
        if state.request.actor != sender.identity.id:
            await self._access.require(sender.identity, TokenScope.OPERATE, state.request.block)
        if state.finished is None:
            item = TurnCancelRequested(turn=request.turn, by=sender.identity.id, mode=request.mode)
            await self._append(item, state.request, key_of("cancel", request.turn, request.mode))

    async def fork(self, command: ForkTurn, sender: Sender) -> MessageAccepted:
        """Run a turn again from one of its steps, in a new conversation of the same block. The turn itself is
        not changed. Refused with ``forbidden`` for another model, if the sender may not operate the block."""
        state = await self.find(command.turn, sender, TokenScope.CHAT)
        await self.check_model_choice(command.model, state.request.block, sender)
        check_step(state, command)
        origin = state.request
        message = SendMessage(
            content=_repeated_content(origin.message) if command.content is None else command.content,
            block=origin.block,
            client_id=f"{command.turn}@{command.step} {command.client_id or new_id()}",
            client_tools=origin.client_tools,
            model=command.model or model_used(state),
            max_tokens=origin.max_tokens,
            temperature=origin.temperature,
            parameters=origin.parameters or {},
            instructions=origin.instructions or "",
            response_format=origin.response_format or None,
        )
        if command.content is not None:
            self._check(message)
        await self.admit(message, sender.identity)
        block, conversation = await self._resolve_conversation(message, sender)
        turn = turn_id(conversation, message.client_id or "")
        request = build_fork_request(_request(message, sender, block, conversation, turn), state, command)
        if await self._turns.has_journal(conversation, turn):
            return _accepted(request, duplicate=True)
        link_span(origin.traceparent)
        ack = await self._accept(request, request, turn)
        return _accepted(request, duplicate=ack.duplicate)

    async def get_turn(self, turn: str, sender: Sender) -> TurnView:
        """Return the state of a turn. Refused with ``not_found``."""
        return (await self.find(turn, sender)).view()

    async def find(self, turn: str, sender: Sender, action: TokenScope = TokenScope.READ) -> TurnState:
        """Return a turn with its journal, if the sender may do this in its block. Refused with ``not_found``, and with
        ``forbidden`` as by ``BlockRights.require``."""
        rights = await self._access.rights_of(sender.identity)
        state = await self._turns.find(turn)
        if state is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such turn.")
        rights.require(action, state.request.block)
        return state

    def _check(self, message: SendMessage) -> None:
        if len(message.content.encode("utf-8", "replace")) > self._max_content:
            raise refusal(ErrorCode.TOO_LARGE)
        if not _has_content(message) and not _brings_tool_result(message):
            raise InvalidField(("content",), "The message has no content.")
        self._attachments.check(message)
        if len(message.shows) > MAX_SHOWS:
            raise InvalidField(("shows",), f"It must have at most {MAX_SHOWS} characters.")

    async def admit(self, message: SendMessage, identity: Identity) -> None:
        """Ask the admission rules. Refused when one denies the message, or fails."""
        for owned in self._admission_rules:
            try:
                await owned.item(message, identity)
            except Refusal as error:
                code = error_code(error.code)
                raise Refusal(
                    ErrorCode.FORBIDDEN if code is ErrorCode.INTERNAL else code, error.message
                ) from error
            except Exception as error:
                log.exception(
                    "the admission rule of plugin %s failed, so the message is refused", owned.owner
                )
                raise refusal(ErrorCode.FORBIDDEN) from error

    async def check_model_choice(self, model: str | None, block: str, sender: Sender) -> None:
        """Refuse a model of the sender's choice, as a change of the block's model would be: it may cost more, and what
        the block knows would be sent to another vendor."""
        if model:
            await self._access.require(sender.identity, TokenScope.OPERATE, block)

    async def _resolve_conversation(self, message: SendMessage, sender: Sender) -> tuple[str, str]:
        """Return the block and conversation that a message belongs to."""
        if message.conversation is not None:
            block = await self._conversations.require(message.conversation, sender, TokenScope.CHAT)
            if message.block not in (None, block):
                raise refusal(ErrorCode.CONFLICT, f"The conversation belongs to the block {block!r}.")
            return block, message.conversation
        block = message.block or self._route(message) or self._blocks.default
        await self._access.require(sender.identity, TokenScope.CHAT, block)
        return block, conversation_id(sender.channel, sender.identity.id, block, message.client_id)

    async def _enqueue(self, item: TurnRequested | TurnSteered, request: TurnRequested) -> MessageAccepted:
        """Put a message into the inbox if its conversation's queue has room. A repeat of a queued message is
        a duplicate."""
        try:
            async with self._queue.reserve(request.conversation):
                ack = await self._accept(item, request, request.turn)
        except QueueFull:
            if not await self._queue.has_turn(request.conversation, request.turn):
                raise
            return _accepted(request, duplicate=True)
        return _accepted(request, duplicate=ack.duplicate)

    async def _accept(self, item: InboxItem, about: TurnRequested, msg_id: str) -> Ack:
        """Put a message into the inbox if its block takes messages."""
        if self._room.is_full:
            raise refusal(ErrorCode.STORAGE_FAILURE)
        async with self._blocks.admit_message(about.block):
            return await self._append(item, about, msg_id)

    async def _append(self, item: InboxItem, about: TurnRequested, msg_id: str) -> Ack:
        scope = Scope(block=about.block, conversation=about.conversation, turn=about.turn)
        try:
            ack = await self._bus.append(
                INBOX,
                item,
                scope=scope,
                msg_id=msg_id,
                timeout=ACCEPT_SECONDS,
                conversation=about.conversation,
            )
        except StorageFull:
            self._room.note_refusal()
            raise
        self._room.note_success()
        return ack


def _request(message: SendMessage, sender: Sender, block: str, conversation: str, turn: str) -> TurnRequested:
    *preceding, first = _client_messages(message, turn)
    history = message.history
    begins = message.conversation is None and message.client_id is None
    if begins and history is None:
        history = ()  # a new conversation has nothing to load
    return TurnRequested(
        turn=turn,
        block=block,
        conversation=conversation,
        message=first,
        actor=sender.identity.id,
        permissions=sender.identity.permissions_in(block),
        token_id=sender.identity.token_id or msgspec.UNSET,
        channel=sender.channel,
        trigger=message.trigger,
        history=history,
        preceding=tuple(preceding) or msgspec.UNSET,
        begins=begins,
        one_shot=message.one_shot or msgspec.UNSET,
        client_tools=message.client_tools,
        model=message.model,
        max_tokens=message.max_tokens,
        temperature=message.temperature,
        parameters=message.parameters or msgspec.UNSET,
        instructions=message.instructions or msgspec.UNSET,
        tool_choice=message.tool_choice or msgspec.UNSET,
        response_format=message.response_format or msgspec.UNSET,
        shows=message.shows or msgspec.UNSET,
        response=message.response or msgspec.UNSET,
        lane="background" if message.background else msgspec.UNSET,
        traceparent=current_traceparent(),
    )


def _has_content(message: SendMessage) -> bool:
    return bool(message.content.strip() or message.images or message.documents)


def _brings_tool_result(message: SendMessage) -> bool:
    """Report whether a message without content brings the result of a tool that the client ran."""
    return bool(message.preceding) and message.preceding[-1].role == "tool"


def _repeated_content(message: Message) -> str:
    """Return the content of a fork's message, which stands for the message of the forked turn: a message of files has
    their names."""
    return message.content or ", ".join(file.name for file in message.attachments)


def _client_messages(message: SendMessage, turn: str) -> list[Message]:
    """Return the client's messages, oldest first. A tool's result may replace a user message."""
    metadata: dict[str, Any] = dict(message.metadata)
    user_message = Message(
        id="", role="user", content=message.content, images=message.images, documents=message.documents,
        metadata=metadata,
    )  # fmt: skip
    said = [*message.preceding, *((user_message,) if _has_content(message) else ())]
    ids = [*(message_id(turn, number) for number in range(len(said) - 1)), message_id(turn)]
    return [msgspec.structs.replace(one, id=id, turn=turn) for one, id in zip(said, ids, strict=True)]


def _accepted(request: TurnRequested, *, duplicate: bool) -> MessageAccepted:
    return MessageAccepted(
        block=request.block,
        conversation=request.conversation,
        turn=request.turn,
        message_id=request.message.id,
        duplicate=duplicate,
    )
