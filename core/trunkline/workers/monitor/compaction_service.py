"""Compacts a conversation: has the plugin's compactor summarise it, and stores the summary record."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trunkline.contracts.blocks.model_choice import SUMMARY
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationSlice,
    LoadConversation,
    utc_now,
)
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES, STORE_MESSAGES
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.models.client import BlockCompleter
from trunkline.contracts.turns.compaction import CompactionCause, CompactionJob, Compactor, SummaryDraft
from trunkline.errors import CompletionError, ErrorCode
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.model_registry import ModelRegistry
from trunkline_bus import Bus, Scope, new_id

log = logging.getLogger(__name__)

ACTOR = "compaction"
"""The actor of what a compaction writes to memory, and of compactions in the background."""

NO_MODEL = (
    "{adapter} writes no summaries, because it only repeats what memory has. Name a model for the purpose `summary` in "
    "preferences.toml, or configure one for everything."
)

LOAD_TIMEOUT, STORE_TIMEOUT = 10.0, 20.0
"""Seconds to wait for memory."""

AFTER_ALL = 2**31
"""A number of messages that no conversation has, to load only what belongs to the conversation as a whole."""


async def show_nothing(sentence: str) -> None:
    """Show no progress: nobody watches a compaction in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """A compaction of a conversation.

    ``turn`` is the turn after which, or in which, it happens: a repeated request of the same turn makes no second
    record. ``model`` is the conversation's model. ``progress`` shows a sentence to people. ``rebirth`` is as in
    ``CompactionJob``.
    """

    block: str
    conversation: str
    turn: str
    actor: str
    model: str
    cause: CompactionCause
    focus: str = ""
    rebirth: bool = False
    progress: Callable[[str], Awaitable[None]] = show_nothing


class CompactionService:
    """Compacts conversations with the compactor of a plugin. It changes no message."""

    def __init__(
        self, bus: Bus, compactor: Compactor, builder: ContextBuilder, models: ModelRegistry
    ) -> None:
        self._bus = bus
        self._models = models
        self._compactor = compactor
        self._builder = builder

    def is_due(self, tokens: int, model: str) -> bool:
        """Report whether a conversation is compacted whose last request to a model had this many tokens."""
        return self._compactor.is_due(tokens, self._builder.window(model))

    async def record_in_effect(self, block: str, conversation: str) -> SummaryRecord | None:
        """Return the conversation's summary record in effect. Raises BusError."""
        return (await self._load(block, conversation, AFTER_ALL)).summary_record

    async def compact(self, request: CompactionRequest) -> SummaryRecord | None:
        """Return the conversation's new summary record; None if there is nothing to summarise. Another record that was
        stored meanwhile is returned in its place.

        Raises CompletionError if no model summarised, ToolError if memory refused a file, and BusError.
        """
        found = await self._load(request.block, request.conversation, 0)
        previous = found.summary_record
        # A monitor may die between storing the record and recording that the turn has it. The next owner of the turn
        # must not summarise a second time: the record names the turn.
        if previous is not None and previous.turn == request.turn:
            return previous
        draft = await self._compactor.compact(await self._job(request, found))
        if draft is None:
            return None
        return await self._store(request, found, draft)

    async def remembers(self, block: str) -> bool:
        """Report whether anything may be remembered in the block. Raises BusError."""
        return (await self._builder.profile(block)).block.memory.enabled

    async def withdraw(self, request: CompactionRequest, record: SummaryRecord) -> None:
        """Withdraw the record in effect, so that the one before it is in effect again. Raises BusError."""
        await self._append(request, withdrawn=record.id)

    async def _job(self, request: CompactionRequest, found: ConversationSlice) -> CompactionJob:
        profile = await self._builder.profile(request.block)
        completer = BlockCompleter(
            self._bus,
            request.block,
            actor=request.actor,
            conversation=request.conversation,
            turn=request.turn,
        )
        summariser = self._models.choose(profile.preferred_model(None, SUMMARY))
        if summariser.adapter.derived:
            raise CompletionError(ErrorCode.PROVIDER_ERROR, NO_MODEL.format(adapter=summariser.label))
        return CompactionJob(
            messages=self._builder.shortened(
                found.messages
            ),  # as the model knew them; whole ones cost much more
            previous=found.summary_record,
            window=self._builder.window(request.model),
            summary_window=self._builder.window(summariser.label),
            cause=request.cause,
            completer=completer,
            progress=request.progress,
            focus=request.focus,
            rebirth=request.rebirth,
            memory=self._memory(request) if profile.block.memory.enabled else None,
        )

    def _memory(self, request: CompactionRequest) -> Memory:
        """Return the memory of the block. Its history names the conversation and turn, so what is written there is not
        taken for the owner's own words (ADR 23)."""
        scope = Scope(block=request.block, conversation=request.conversation, turn=request.turn)
        return block_memory(self._bus, request.block, ACTOR, scope)

    async def _store(
        self, request: CompactionRequest, found: ConversationSlice, draft: SummaryDraft
    ) -> SummaryRecord | None:
        previous = found.summary_record
        record = SummaryRecord(
            id=new_id("sum"),
            text=draft.text,
            through=found.messages[draft.count - 1].id,
            count=draft.count,
            model=draft.model,
            created_at=utc_now(),
            turn=request.turn,
            previous=previous.id if previous is not None else "",
            focus=request.focus,
        )
        await self._append(request, added=record)
        # Memory stores the record only if it follows the one in effect. Two monitors may have summarised at the same
        # time: one while it hands the conversation over. The record that was stored first stays.
        stored = await self.record_in_effect(request.block, request.conversation)
        if stored != record:
            log.info("conversation %s was compacted by another monitor meanwhile", request.conversation)
        return stored

    async def _append(
        self, request: CompactionRequest, *, added: SummaryRecord | None = None, withdrawn: str | None = None
    ) -> None:
        append = AppendConversation(
            block=request.block,
            conversation=request.conversation,
            messages=(),
            actor=request.actor,
            turn=request.turn,
            summary_record=added,
            withdrawn_record=withdrawn,
        )
        await self._bus.call(STORE_MESSAGES, append, timeout=STORE_TIMEOUT, repeatable=True)

    async def _load(self, block: str, conversation: str, after: int) -> ConversationSlice:
        query = LoadConversation(block=block, conversation=conversation, after=after)
        return await self._bus.call(LOAD_MESSAGES, query, timeout=LOAD_TIMEOUT, repeatable=True)
