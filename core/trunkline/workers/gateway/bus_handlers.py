"""The gateway's services on the bus: the handler of each endpoint. The subject tells the calling channel."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from trunkline.contracts.approvals.messages import (
    ApprovalList,
    ApprovalView,
    ForgetGrant,
    GetApproval,
    GrantList,
    ListApprovals,
    ListGrants,
)
from trunkline.contracts.approvals.subjects import FORGET_GRANT, GET_APPROVAL, LIST_APPROVALS, LIST_GRANTS
from trunkline.contracts.blocks.messages import (
    ArchiveBlock,
    BlockList,
    BlockStopped,
    BlockView,
    ChangeBlock,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    ResetBlock,
    RestoreBlock,
    ShowBlock,
    StopBlock,
)
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    ListConversations,
    LoadConversation,
)
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.answerer import Answerer, GetAnswerer
from trunkline.contracts.gateway.messages import (
    CancelTurn,
    CommandSucceeded,
    ConversationView,
    ForkTurn,
    GetConversation,
    GetTurn,
    MessageAccepted,
    RenameConversation,
    SendMessage,
    TurnView,
)
from trunkline.contracts.gateway.subjects import (
    ARCHIVE_BLOCK,
    CANCEL_TURN,
    CHANGE_BLOCK,
    CREATE_BLOCK,
    DECIDE_APPROVAL,
    DELETE_BLOCK,
    FORK_TURN,
    GET_ANSWERER,
    GET_CONVERSATION,
    GET_TURN,
    LIST_BLOCKS,
    LIST_CONVERSATIONS,
    LOAD_MESSAGES,
    RENAME_CONVERSATION,
    RESET_BLOCK,
    RESTORE_BLOCK,
    SEND_MESSAGE,
    SHOW_BLOCK,
    STOP_BLOCK,
    STORE_MESSAGES,
)
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.workers.gateway.errors import refuse_errors
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.services import Services
from trunkline_bus import Endpoint, Request, Service

Req = TypeVar("Req")
Rep = TypeVar("Rep")


class BusHandlers:
    """Registers the gateway's endpoints on the bus and translates their requests."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def register(self, service: Service) -> None:
        """Register every endpoint."""
        for endpoint, handler in self._handlers():
            await service.add(endpoint, refuse_errors(handler))

    def _handlers(self) -> tuple[tuple[Endpoint[Any, Any], Callable[[Request[Any]], Awaitable[Any]]], ...]:
        return (
            (SEND_MESSAGE, self.send),
            (CANCEL_TURN, self.cancel),
            (FORK_TURN, self.fork),
            (DECIDE_APPROVAL, self.decide),
            (LIST_APPROVALS, self.approvals),
            (GET_APPROVAL, self.approval),
            (LIST_GRANTS, self.grants),
            (FORGET_GRANT, self.forget_grant),
            (GET_TURN, self.turn),
            (GET_CONVERSATION, self.conversation),
            (LIST_CONVERSATIONS, self.conversations),
            (RENAME_CONVERSATION, self.rename),
            (GET_ANSWERER, self.answerer),
            (LIST_BLOCKS, self.blocks),
            (SHOW_BLOCK, self.block),
            (CREATE_BLOCK, self.create_block),
            (CHANGE_BLOCK, self.change_block),
            (STOP_BLOCK, self.stop_block),
            (RESET_BLOCK, self.reset_block),
            (ARCHIVE_BLOCK, self.archive_block),
            (RESTORE_BLOCK, self.restore_block),
            (DELETE_BLOCK, self.delete_block),
            (STORE_MESSAGES, self.store),
            (LOAD_MESSAGES, self.load),
        )

    async def send(self, request: Request[SendMessage]) -> MessageAccepted:
        return await self._services.messages.send(request.data, sender_of(request))

    async def cancel(self, request: Request[CancelTurn]) -> CommandSucceeded:
        await self._services.messages.cancel(request.data, sender_of(request))
        return CommandSucceeded()

    async def fork(self, request: Request[ForkTurn]) -> MessageAccepted:
        return await self._services.messages.fork(request.data, sender_of(request))

    async def decide(self, request: Request[ApprovalDecided]) -> CommandSucceeded:
        await self._services.approvals.decide(request.data, sender_of(request))
        return CommandSucceeded()

    async def approvals(self, request: Request[ListApprovals]) -> ApprovalList:
        return await self._services.approvals.list_approvals(request.data)

    async def approval(self, request: Request[GetApproval]) -> ApprovalView:
        return await self._services.approvals.get_approval(request.data.id)

    async def grants(self, request: Request[ListGrants]) -> GrantList:
        return await self._services.grants.list_grants()

    async def forget_grant(self, request: Request[ForgetGrant]) -> CommandSucceeded:
        await self._services.grants.revoke(request.data.id, sender_of(request).identity)
        return CommandSucceeded()

    async def turn(self, request: Request[GetTurn]) -> TurnView:
        return await self._services.messages.get_turn(request.data.turn)

    async def conversation(self, request: Request[GetConversation]) -> ConversationView:
        return await self._services.conversations.view(request.data)

    async def conversations(self, request: Request[ListConversations]) -> ConversationPage:
        return await self._services.conversations.list_conversations(request.data)

    async def rename(self, request: Request[RenameConversation]) -> ConversationFound:
        owner = sender_of(request).require_owner("names conversations")
        return ConversationFound(summary=await self._services.conversations.rename(request.data, owner))

    async def answerer(self, request: Request[GetAnswerer]) -> Answerer:
        return await self._services.blocks.answerer(request.data.block)

    async def blocks(self, request: Request[ListBlocks]) -> BlockList:
        return await self._services.blocks.list_blocks(archived=request.data.archived)

    async def block(self, request: Request[ShowBlock]) -> BlockView:
        return BlockView(block=await self._services.blocks.get_block(request.data.name))

    async def create_block(self, request: Request[CreateBlock]) -> BlockView:
        return BlockView(block=await self._services.blocks.create(request.data, _owner(request)))

    async def change_block(self, request: Request[ChangeBlock]) -> BlockView:
        return BlockView(block=await self._services.blocks.change(request.data, _owner(request)))

    async def stop_block(self, request: Request[StopBlock]) -> BlockStopped:
        return await self._services.blocks.stop(request.data, _owner(request))

    async def reset_block(self, request: Request[ResetBlock]) -> BlockView:
        return BlockView(block=await self._services.blocks.reset(request.data, _owner(request)))

    async def archive_block(self, request: Request[ArchiveBlock]) -> CommandSucceeded:
        await self._services.blocks.archive(request.data.name, _owner(request))
        return CommandSucceeded()

    async def restore_block(self, request: Request[RestoreBlock]) -> BlockView:
        return BlockView(block=await self._services.blocks.restore(request.data.name, _owner(request)))

    async def delete_block(self, request: Request[DeleteBlock]) -> CommandSucceeded:
        await self._services.blocks.delete(request.data, _owner(request))
        return CommandSucceeded()

    async def store(self, request: Request[AppendConversation]) -> ConversationAppended:
        return await self._services.conversations.store(request.data)

    async def load(self, request: Request[LoadConversation]) -> ConversationSlice:
        return await self._services.conversations.load(request.data)


def sender_of(request: Request[Any]) -> Sender:
    """Return the sender of a request. A worker's credentials allow only its own channel in the subject."""
    channel = request.keys["channel"]
    return Sender(channel, Identity(id=f"channel:{channel}", type="owner"))


def _owner(request: Request[Any]) -> str:
    return sender_of(request).require_owner("changes blocks")
