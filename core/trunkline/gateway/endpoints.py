"""The gateway's services on the bus: which handler answers which endpoint. The subject says which channel asks."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from trunkline.abc.gateway import Identity
from trunkline.gateway.approvals import Approvals
from trunkline.gateway.blocks import Blocks
from trunkline.gateway.conversations import Conversations
from trunkline.gateway.faults import guarded
from trunkline.gateway.grants import Grants
from trunkline.gateway.sender import Sender
from trunkline.gateway.service import Messages
from trunkline.messages.approvals import (
    ApprovalList,
    ApprovalView,
    ForgetGrant,
    GetApproval,
    GrantList,
    ListApprovals,
    ListGrants,
)
from trunkline.messages.blocks import (
    ArchiveBlock,
    BlockList,
    BlockView,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    RestoreBlock,
    ShowBlock,
)
from trunkline.messages.conversation import (
    AppendConversation,
    ConversationAppended,
    ConversationPage,
    ConversationSlice,
    ListConversations,
    LoadConversation,
)
from trunkline.messages.gateway import (
    CancelTurn,
    ConversationView,
    Done,
    ForkTurn,
    GetConversation,
    GetTurn,
    MessageAccepted,
    SendMessage,
    TurnView,
)
from trunkline.messages.turn import ApprovalDecided
from trunkline.subjects import (
    ARCHIVE_BLOCK,
    CANCEL_TURN,
    CREATE_BLOCK,
    DECIDE_APPROVAL,
    DELETE_BLOCK,
    FORGET_GRANT,
    FORK_TURN,
    GET_APPROVAL,
    GET_CONVERSATION,
    GET_TURN,
    LIST_APPROVALS,
    LIST_BLOCKS,
    LIST_CONVERSATIONS,
    LIST_GRANTS,
    LOAD_MESSAGES,
    RESTORE_BLOCK,
    SEND,
    SHOW_BLOCK,
    STORE_MESSAGES,
)
from trunkline_bus import Endpoint, Request, Service

Req = TypeVar("Req")
Rep = TypeVar("Rep")


class BusFace:
    """The gateway as the bus sees it."""

    def __init__(
        self,
        messages: Messages,
        approvals: Approvals,
        grants: Grants,
        conversations: Conversations,
        blocks: Blocks,
    ) -> None:
        self._messages = messages
        self._approvals = approvals
        self._grants = grants
        self._conversations = conversations
        self._blocks = blocks

    async def answer_on(self, service: Service) -> None:
        """Add every endpoint."""
        table: tuple[tuple[Endpoint[Any, Any], Callable[[Request[Any]], Awaitable[Any]]], ...] = (
            (SEND, self.send),
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
            (LIST_BLOCKS, self.blocks),
            (SHOW_BLOCK, self.block),
            (CREATE_BLOCK, self.create_block),
            (ARCHIVE_BLOCK, self.archive_block),
            (RESTORE_BLOCK, self.restore_block),
            (DELETE_BLOCK, self.delete_block),
            (STORE_MESSAGES, self.store),
            (LOAD_MESSAGES, self.load),
        )
        for endpoint, handler in table:
            await service.add(endpoint, guarded(handler))

    async def send(self, request: Request[SendMessage]) -> MessageAccepted:
        return await self._messages.send(request.data, sender_of(request))

    async def cancel(self, request: Request[CancelTurn]) -> Done:
        await self._messages.cancel(request.data, sender_of(request))
        return Done()

    async def fork(self, request: Request[ForkTurn]) -> MessageAccepted:
        return await self._messages.fork(request.data, sender_of(request))

    async def decide(self, request: Request[ApprovalDecided]) -> Done:
        await self._approvals.decide(request.data, sender_of(request))
        return Done()

    async def approvals(self, request: Request[ListApprovals]) -> ApprovalList:
        return await self._approvals.listed(request.data)

    async def approval(self, request: Request[GetApproval]) -> ApprovalView:
        return await self._approvals.shown(request.data.id)

    async def grants(self, request: Request[ListGrants]) -> GrantList:
        return await self._grants.listed()

    async def forget_grant(self, request: Request[ForgetGrant]) -> Done:
        await self._grants.forget(request.data.id, sender_of(request).identity)
        return Done()

    async def turn(self, request: Request[GetTurn]) -> TurnView:
        return await self._messages.turn(request.data.turn)

    async def conversation(self, request: Request[GetConversation]) -> ConversationView:
        return await self._conversations.view(request.data)

    async def conversations(self, request: Request[ListConversations]) -> ConversationPage:
        return await self._conversations.page(request.data)

    async def blocks(self, request: Request[ListBlocks]) -> BlockList:
        return await self._blocks.listed(archived=request.data.archived)

    async def block(self, request: Request[ShowBlock]) -> BlockView:
        return BlockView(block=await self._blocks.show(request.data.name))

    async def create_block(self, request: Request[CreateBlock]) -> BlockView:
        return BlockView(block=await self._blocks.create(request.data, _actor(request)))

    async def archive_block(self, request: Request[ArchiveBlock]) -> Done:
        await self._blocks.archive(request.data.name, _actor(request))
        return Done()

    async def restore_block(self, request: Request[RestoreBlock]) -> BlockView:
        return BlockView(block=await self._blocks.restore(request.data.name, _actor(request)))

    async def delete_block(self, request: Request[DeleteBlock]) -> Done:
        await self._blocks.delete(request.data, _actor(request))
        return Done()

    async def store(self, request: Request[AppendConversation]) -> ConversationAppended:
        return await self._conversations.store(request.data)

    async def load(self, request: Request[LoadConversation]) -> ConversationSlice:
        return await self._conversations.load(request.data)


def sender_of(request: Request[Any]) -> Sender:
    """Who asks: a worker's credentials allow its own channel in the subject and no other."""
    channel = request.keys["channel"]
    return Sender(channel, Identity(id=f"channel:{channel}"))


def _actor(request: Request[Any]) -> str:
    return sender_of(request).identity.id
