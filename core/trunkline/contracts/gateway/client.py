"""The ``Gateway`` protocol over the bus, used by channels and commands under one channel's name.

A request without an answer is sent again with the same client id, so an accepted message counts once.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Literal, TypeVar

import anyio
import msgspec
from msgspec import UNSET

from trunkline.contracts.agents.messages import AgentList, EndAgent, ListAgents
from trunkline.contracts.approvals.client import watch_approvals
from trunkline.contracts.approvals.messages import (
    Approval,
    ApprovalList,
    ApprovalScope,
    ApprovalView,
    ForgetGrant,
    GetApproval,
    GrantList,
    ListApprovals,
    ListGrants,
)
from trunkline.contracts.auth.linked_senders import GetLinkedSenders, LinkedSender, LinkSender
from trunkline.contracts.blocks.messages import (
    ArchiveBlock,
    Block,
    BlockConfig,
    BlockList,
    BlockStopped,
    ChangeBlock,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    ResetBlock,
    RestoreBlock,
    ShowBlock,
    StopBlock,
)
from trunkline.contracts.blocks.templates import BlockTemplate, ListBlockTemplates
from trunkline.contracts.channels.records_client import BusChannelRecords
from trunkline.contracts.conversations.branch import ConversationBranches
from trunkline.contracts.conversations.messages import (
    Attachment,
    ConversationPage,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.costs.client import watch_budget_events
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.report_messages import CostTotals, GetCosts, Grouping
from trunkline.contracts.gateway import subjects as gateway
from trunkline.contracts.gateway.answerer import Answerer, ChooseModel, GetAnswerer
from trunkline.contracts.gateway.messages import (
    CancelTurn,
    ChangeConversation,
    ConversationExport,
    ConversationView,
    ExportConversation,
    ExportFormat,
    ForkTurn,
    GetBranches,
    GetConversation,
    GetFile,
    GetTurn,
    MessageAccepted,
    SendMessage,
    TurnView,
)
from trunkline.contracts.models.abilities_client import BlockAbilities
from trunkline.contracts.models.listing import LISTING_SECONDS, AdapterListing, ListModels, ModelListings
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline.contracts.turns.begun_turn import BegunTurn, read_begun_turn
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.contracts.turns.conversation_turns import ConversationTurns
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.errors import Unavailable
from trunkline_bus import Bus, BusError, CallTimeout, Endpoint, NoResponders, RemoteFault, new_id

Req = TypeVar("Req")
Rep = TypeVar("Rep")

LISTING = LISTING_SECONDS
"""Seconds that vendors may take to list their models, in addition to the time to answer."""

STOPPING = 30.0
"""Seconds that the gateway may take to end the turns of a block, in addition to the time to answer."""


class GatewayClient:
    """The gateway's client for channels and commands: a ``Gateway`` with further methods for commands. ``channel`` is
    the channel's name and a subject key. ``timeout`` is how long to retry, in seconds. ``shows`` is the channel's
    description of the form in which people see an answer; the client adds it to each message. ``sentences`` are those
    of the platform, for a channel.

    Guarantees: what a request changes is stored when its method returns. A request that may be repeated is sent again
    until a gateway answers or ``timeout`` has passed.

    Not guaranteed: after Unavailable, whether the request was carried out. A change of a block is sent only once,
    because a second archive request would archive again.

    Errors: every async method raises Unavailable when no gateway answers, and RemoteFault with a code and a sentence
    for people. The code is ``engine_unavailable`` if a worker behind the gateway does not answer.
    """

    def __init__(
        self,
        bus: Bus,
        channel: str,
        *,
        timeout: float = 20.0,
        shows: str = "",
        sentences: Sentences = ENGLISH_SENTENCES,
    ) -> None:
        self.sentences = sentences
        self._bus = bus
        self._shows = shows
        self._channel = channel
        self._timeout = timeout
        self._poll_limiter = PollLimiter()
        self._turns = ConversationTurns(bus, self._poll_limiter)
        self._listens = anyio.Lock()
        self._hears_turns = False

    async def send(self, message: SendMessage) -> MessageAccepted:
        """Send a message. When this method returns, the message is stored on disk. It counts once, however often it is
        sent. Raises RemoteFault as ``Gateway.send`` does.
        """
        if message.client_id is None:
            message = msgspec.structs.replace(message, client_id=new_id())
        if self._shows and not message.shows:
            message = msgspec.structs.replace(message, shows=self._shows)
        return await self._call_until_answered(gateway.SEND_MESSAGE, message)

    def watch(self, conversation: str, turn: str, *, after: str = "") -> FeedReader:
        """Return a reader of the turn's events after ``after``. Raises ValueError if ``after`` is not a position."""
        return FeedReader(self._bus, conversation, turn, after=after, poll_limiter=self._poll_limiter)

    async def turns(self, conversation: str, *, after: str | None = None) -> AsyncGenerator[BegunTurn, None]:
        """Yield the turns of a conversation as they begin, until closed. Raises nothing."""
        async with self._listens:
            if not self._hears_turns:
                await self._turns.open()
                self._hears_turns = True
        async with aclosing(self._turns.watch(conversation, after)) as turns:
            async for turn in turns:
                if turn != after:
                    yield await read_begun_turn(self._bus, conversation, turn)

    async def cancel(self, turn: str, *, mode: Literal["now", "after_step"] = "now") -> None:
        """End a turn. A turn that has ended stays as it is. Raises RemoteFault ``not_found`` if it does not exist."""
        await self._call_until_answered(gateway.CANCEL_TURN, CancelTurn(turn=turn, mode=mode))

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
        """Decide about a parked call, or answer its question. The first decision counts. With a wider ``scope`` an
        approval also holds for calls like this one. Raises RemoteFault as ``Gateway.decide`` does.
        """
        decision = ApprovalDecided(
            turn=turn,
            call=call,
            call_hash=call_hash,
            allow=allow,
            by=self._channel,
            scope=scope,
            answer=answer,
        )
        await self._call_until_answered(gateway.DECIDE_APPROVAL, decision)

    async def waiting(self) -> tuple[Approval, ...]:
        """Return the calls that wait for a decision now, of all channels. Raises nothing besides the errors of every
        method.
        """
        return (await self.approval_list()).approvals

    def approvals(self) -> AsyncGenerator[Approval, None]:
        """Yield the calls that wait for a decision, then each change of one, until closed; of all channels. Raises
        nothing.
        """
        return watch_approvals(self._bus)

    def budget_events(self) -> AsyncGenerator[BudgetEvent, None]:
        """Yield the events of budgets from now on, each once, until closed. Raises nothing."""
        return watch_budget_events(self._bus)

    async def approval_list(self, *, block: str | None = None, settled: bool = False) -> ApprovalList:
        """Return the calls that wait for a decision; with ``settled`` also those decided in the last hour. Raises
        nothing besides the errors of every method.
        """
        return await self._call_until_answered(
            gateway.LIST_APPROVALS, ListApprovals(block=block, settled=settled)
        )

    async def approval(self, id: str) -> ApprovalView:
        """Return one approval with the arguments of its call. ``id`` may be any unique prefix of the id. Raises
        RemoteFault ``not_found`` if no approval has this id, and ``conflict`` if several begin with it.
        """
        return await self._call_until_answered(gateway.GET_APPROVAL, GetApproval(id=id))

    async def grants(self) -> GrantList:
        """Return the grants: permissions that outlive one call. Raises nothing besides the errors of every method."""
        return await self._call_until_answered(gateway.LIST_GRANTS, ListGrants())

    async def forget_grant(self, id: str) -> None:
        """Revoke a grant. Raises RemoteFault ``not_found`` if there is no such grant, and ``forbidden`` for anyone but
        the owner.
        """
        await self._call_once(gateway.FORGET_GRANT, ForgetGrant(id=id))

    async def fork(self, request: ForkTurn) -> MessageAccepted:
        """Call the model again from a step of a turn, in a new conversation. The request counts once, however often it
        is sent.

        Raises:
            RemoteFault: ``not_found``: there is no such turn. ``invalid_request``: the turn has no such step.
                ``conflict``: the step is behind the end of the turn, and the request has no message. Other codes as for
                ``send``.
        """
        if request.client_id is None:
            request = msgspec.structs.replace(request, client_id=new_id())
        return await self._call_until_answered(gateway.FORK_TURN, request)

    async def turn(self, turn: str) -> TurnView:
        """Return the state of a turn. Raises RemoteFault ``not_found`` if there is no such turn."""
        return await self._call_until_answered(gateway.GET_TURN, GetTurn(turn=turn))

    async def conversation(self, conversation: str, *, include_tools: bool = False) -> ConversationView:
        """Return a conversation with its messages, including those of the running turn. Raises RemoteFault
        ``not_found`` if there is no such conversation.
        """
        request = GetConversation(conversation=conversation, include_tools=include_tools)
        return await self._call_until_answered(gateway.GET_CONVERSATION, request)

    async def file(self, file: Attachment) -> bytes:
        """Return the content of a file. Raises RemoteFault as ``Gateway.file`` does."""
        data = b""
        while True:
            request = GetFile(path=file.path, offset=len(data))
            piece = await self._call_until_answered(gateway.GET_FILE, request)
            data += piece.data
            if len(data) >= piece.size or not piece.data:
                return data

    async def context(
        self, conversation: str, turn: str | None = None, *, texts: bool = False
    ) -> ContextView:
        """Return what a model was sent in a turn. Raises RemoteFault as ``Gateway.context`` does."""
        request = GetContext(conversation=conversation, turn=turn, texts=texts)
        return await self._call_until_answered(gateway.GET_CONTEXT, request)

    async def conversations(self, query: ListConversations) -> ConversationPage:
        """Return a page of conversations, newest first. Two pages are not one snapshot. Raises nothing besides the
        errors of every method.
        """
        return await self._call_until_answered(gateway.LIST_CONVERSATIONS, query)

    async def rename_conversation(self, conversation: str, title: str | None) -> ConversationSummary:
        """Set the title of a conversation; None restores the title derived from its first message. Raises RemoteFault
        as ``Gateway.rename_conversation`` does.
        """
        return await self._change_conversation(ChangeConversation(conversation=conversation, title=title))

    async def mark_conversation(
        self, conversation: str, *, pinned: bool | None = None, archived: bool | None = None
    ) -> ConversationSummary:
        """Pin or archive a conversation, or undo that; None leaves it unchanged. Raises RemoteFault as
        ``Gateway.mark_conversation`` does.
        """
        return await self._change_conversation(
            ChangeConversation(
                conversation=conversation,
                pinned=UNSET if pinned is None else pinned,
                archived=UNSET if archived is None else archived,
            )
        )

    async def _change_conversation(self, change: ChangeConversation) -> ConversationSummary:
        found = await self._call_until_answered(gateway.CHANGE_CONVERSATION, change)
        assert found.summary is not None
        return found.summary

    async def branches(self, conversation: str) -> ConversationBranches:
        """Return where a conversation and its forks part. Raises RemoteFault ``not_found`` if there is no such
        conversation.
        """
        return await self._call_until_answered(gateway.GET_BRANCHES, GetBranches(conversation=conversation))

    async def export_conversation(self, conversation: str, format: ExportFormat) -> ConversationExport:
        """Return everything that was said in a conversation and its branches. Raises RemoteFault ``not_found`` if there
        is no such conversation.
        """
        request = ExportConversation(conversation=conversation, format=format)
        return await self._call_until_answered(gateway.EXPORT_CONVERSATION, request)

    async def costs(
        self,
        since: datetime,
        *,
        by: Grouping = "block",
        block: str | None = None,
        conversation: str | None = None,
    ) -> CostTotals:
        """Return what models cost since a time. Raises RemoteFault as ``Gateway.costs`` does."""
        request = GetCosts(since=since, by=by, block=block, conversation=conversation)
        return await self._call_until_answered(gateway.GET_COSTS, request)

    async def senders(self) -> tuple[LinkedSender, ...]:
        """Return the linked senders of this channel. Raises nothing besides the errors of every method."""
        return (await self._call_until_answered(gateway.GET_SENDERS, GetLinkedSenders())).senders

    async def link_sender(self, code: str, sender: str, place: str, name: str) -> bool:
        """Link the sender of a pairing code; report whether the code does so. Raises nothing besides the errors of
        every method.
        """
        request = LinkSender(code=code[:100], sender=sender, place=place, name=name[:200])
        return (await self._call_until_answered(gateway.LINK_SENDER, request)).linked

    async def agents(self, *, block: str | None = None, conversation: str | None = None) -> AgentList:
        """Return the agents that work for other agents, and their tasks: of a block, or of everything that works for a
        conversation. Raises nothing besides the errors of every method.
        """
        return await self._call_until_answered(
            gateway.LIST_AGENTS, ListAgents(block=block, conversation=conversation)
        )

    async def end_agent(self, id: str) -> None:
        """End a lasting agent or cancel a task, by its id. Raises RemoteFault ``not_found``."""
        await self._call_once(gateway.END_AGENT, EndAgent(id=id))

    async def blocks(self) -> tuple[Block, ...]:
        """Return all blocks that are not archived. Raises nothing besides the errors of every method."""
        return (await self.block_list()).blocks

    async def block_list(self, *, archived: bool = False) -> BlockList:
        """Return all blocks; with ``archived`` also the archived ones. Raises nothing besides the errors of every
        method.
        """
        return await self._call_until_answered(gateway.LIST_BLOCKS, ListBlocks(archived=archived))

    async def block_templates(self) -> tuple[BlockTemplate, ...]:
        """Return the templates that a new block can begin with. Raises nothing besides the errors of every method."""
        return (await self._call_until_answered(gateway.LIST_BLOCK_TEMPLATES, ListBlockTemplates())).templates

    async def block(self, name: str) -> Block:
        """Return a block. Raises RemoteFault ``not_found`` if there is no such block."""
        return (await self._call_until_answered(gateway.SHOW_BLOCK, ShowBlock(name=name))).block

    async def answerer(self, block: str | None = None, *, conversation: str | None = None) -> Answerer:
        """Return the model that answers in a block or in a conversation; None selects the default block. Raises as
        ``Gateway.answerer`` does.
        """
        request = GetAnswerer(block=block, conversation=conversation)
        return await _answered(lambda: self._call(gateway.GET_ANSWERER, request, 6.0, repeatable=True))

    async def choose_model(self, conversation: str | None, model: str | None) -> Answerer:
        """Choose the model of a conversation; None removes the choice. Without a conversation, check the model. Raises
        RemoteFault as ``Gateway.choose_model`` does.
        """
        request = ChooseModel(conversation=conversation, model=model)
        return await _answered(
            lambda: self._call(gateway.CHOOSE_MODEL, request, self._timeout + LISTING, repeatable=True)
        )

    async def models(self, *, refresh: bool = False) -> tuple[AdapterListing, ...]:
        """Return the models of the configured adapters. Raises nothing besides the errors of every method."""
        request = ListModels(refresh=refresh)
        found: ModelListings = await _answered(
            lambda: self._call(gateway.GET_MODELS, request, self._timeout + LISTING, repeatable=True)
        )
        return found.adapters

    # Changes of blocks are not sent again if the gateway may have received them: a second archive request would
    # archive again.

    async def create_block(
        self, name: str, config: BlockConfig | None = None, *, template: str = ""
    ) -> Block:
        """Create a block, with what a template gives it. Raises RemoteFault ``conflict`` if there is a block of this
        name, and ``invalid_request`` if the name, a setting or the template is not valid.
        """
        request = CreateBlock(name=name, config=config or BlockConfig(), template=template)
        return (await self._call_once(gateway.CREATE_BLOCK, request)).block

    async def change_block(self, name: str, changes: Mapping[str, Any]) -> Block:
        """Change settings of a block, by dotted keys; the value None removes a setting. Raises RemoteFault
        ``not_found`` if there is no such block, ``invalid_request`` if a setting is not valid, and ``conflict`` if the
        block's file cannot be read.
        """
        return (
            await self._call_once(gateway.CHANGE_BLOCK, ChangeBlock(name=name, changes=dict(changes)))
        ).block

    async def stop_block(self, name: str, *, finish: bool = False) -> BlockStopped:
        """Switch a block off and cancel its turns; with ``finish`` let the turns already accepted run to their end.

        Not guaranteed: after ``conflict``, that nothing was done. The block is switched off, and its turns are
        cancelled.

        Raises:
            RemoteFault: ``not_found``: there is no such block. ``conflict``: its turns or background tasks have not
                ended within the time limit, or the block is being stopped.
        """
        return await self._call_once(gateway.STOP_BLOCK, StopBlock(name=name, finish=finish), STOPPING)

    async def reset_block(self, name: str, *, hard: bool = False) -> Block:
        """Cancel a block's turns and remove its conversations and what its agent wrote or learned. With ``hard`` also
        remove what the owner added besides the settings, and empty the workspace. Raises RemoteFault as ``stop_block``
        does; after ``conflict`` nothing is removed.
        """
        return (await self._call_once(gateway.RESET_BLOCK, ResetBlock(name=name, hard=hard), STOPPING)).block

    async def archive_block(self, name: str) -> None:
        """Cancel a block's turns and archive the block unchanged. Raises RemoteFault as ``stop_block`` does; after
        ``conflict`` nothing is archived.
        """
        await self._call_once(gateway.ARCHIVE_BLOCK, ArchiveBlock(name=name), STOPPING)

    async def restore_block(self, name: str) -> Block:
        """Restore the newest archive of that name. Raises RemoteFault ``not_found`` if there is none, and ``conflict``
        if there is a block or a workspace of this name.
        """
        return (await self._call_once(gateway.RESTORE_BLOCK, RestoreBlock(name=name))).block

    async def delete_block(self, name: str, *, archived: bool = False) -> None:
        """Cancel a block's turns and delete the block; with ``archived`` delete the newest archive of that name. Raises
        RemoteFault as ``stop_block`` does; after ``conflict`` nothing is deleted.
        """
        await self._call_once(gateway.DELETE_BLOCK, DeleteBlock(name=name, archived=archived), STOPPING)

    def records(self) -> BusChannelRecords:
        """Return the records of this channel. Raises nothing."""
        return BusChannelRecords(self._bus, self._channel)

    def abilities(self, block: str | None = None) -> BlockAbilities:
        """Return the client for transcripts, speech and vectors by the models of a block. Raises nothing."""
        return BlockAbilities(self._bus, block, actor=f"channel:{self._channel}")

    async def _call_until_answered(self, endpoint: Endpoint[Any, Rep], request: Any) -> Rep:
        """Send the request until a gateway answers or ``timeout`` has passed. Only for requests that may be
        repeated.
        """

        async def ask() -> Rep:
            deadline = anyio.current_time() + self._timeout
            while True:
                try:
                    return await self._call(endpoint, request, min(5.0, self._timeout), repeatable=True)
                except (CallTimeout, NoResponders):
                    if anyio.current_time() >= deadline:
                        raise

        return await _answered(ask)

    async def _call_once(self, endpoint: Endpoint[Any, Rep], request: Any, longer: float = 0.0) -> Rep:
        return await _answered(lambda: self._call(endpoint, request, self._timeout + longer))

    async def _call(
        self, endpoint: Endpoint[Any, Rep], request: Any, timeout: float, *, repeatable: bool = False
    ) -> Rep:
        return await self._bus.call(
            endpoint, request, timeout=timeout, repeatable=repeatable, channel=self._channel
        )


async def _answered(ask: Callable[[], Awaitable[Rep]]) -> Rep:
    try:
        return await ask()
    except RemoteFault:
        raise
    except BusError as error:
        raise Unavailable(
            f"No gateway answers: {error}", hint="Start one with `trunkline up`, or read its log."
        ) from error
