"""Compaction within a turn: the commands ``/compact`` and ``/rebirth``, a request that is too long, and a request that
a model refused as too long. Progress is shown in the turn's feed."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.token_estimate import estimate_input_tokens
from trunkline.contracts.turns.compaction import CompactionCause
from trunkline.contracts.turns.feed_messages import COMPACTION_STATUS, FeedEvent, StatusShown
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ModelError, ToolError
from trunkline.policy import ActorPermissions
from trunkline.workers.monitor.compaction_service import CompactionRequest, CompactionService
from trunkline.workers.monitor.context_builder import TurnContext
from trunkline.workers.monitor.model_history import covers

log = logging.getLogger(__name__)

COMMAND, REBIRTH_COMMAND = "/compact", "/rebirth"

UNDO = "undo"

BLOCK_MEMORY = "memory.md"
"""The file of a block to which a rebirth writes."""

NOT_INSTALLED = (
    "Conversations are not compacted here: the plugin `compaction` is not loaded. Remove it from `[plugins] disabled` "
    "in trunkline.toml, or install it, and restart; `trunkline doctor` names what is wrong."
)

BY_CLIENT = "This client sends the whole conversation with each message, so it decides what a model receives."

NOT_REMEMBERED = "Nothing is remembered in this block: its block.toml says so (`memory.enabled`)."

NOT_PERMITTED = "The permissions of this request do not include memory.md of this block."

NOTHING_OLD = "There is nothing to summarise: no message is older than those that stay as they are."

NOTHING_TO_UNDO = "There is nothing to undo: no message of this conversation is summarised."

CountTokens = Callable[[ModelRequest], Awaitable[int | None]]
"""Returns the tokens of a request as the vendor counts them; None if the vendor does not count."""


class TurnCompaction:
    """The compaction of one turn's conversation. ``model`` answers in the turn, ``emit`` shows events to people."""

    def __init__(
        self,
        service: CompactionService | None,
        context: TurnContext,
        model: str,
        emit: Callable[[FeedEvent], Awaitable[None]],
    ) -> None:
        self._service = service
        self._context = context
        self._model = model
        self._emit = emit

    async def answer_command(self, command: str, used: SummaryRecord | None) -> str:
        """Carry out the text after ``/compact``; return the sentence for the person. ``used`` is the record in effect
        when the turn began.

        Raises BusError while memory does not answer.
        """
        if self._service is None:
            return NOT_INSTALLED
        if self._context.request.history is not None:
            return BY_CLIENT
        if command.casefold() == UNDO:
            return await self._undo(self._service, used)
        return await self._summarise(self._service, self._request("command", command), used)

    async def answer_rebirth(
        self, command: str, used: SummaryRecord | None, permissions: ActorPermissions
    ) -> str:
        """Carry out the text after ``/rebirth``; return the sentence for the person. Without the permission to write
        ``memory.md``, nothing is done.

        Raises BusError while memory does not answer.
        """
        request = self._context.request
        if self._service is None:
            return NOT_INSTALLED
        if request.history is not None:
            return BY_CLIENT
        if not permissions.allows_memory(f"/{root_path(request.block, BLOCK_MEMORY)}"):
            return NOT_PERMITTED
        if not await self._service.remembers(request.block):
            return NOT_REMEMBERED
        rebirth = replace(self._request("command", command), rebirth=True)
        return await self._summarise(self._service, rebirth, used)

    async def _summarise(
        self, service: CompactionService, request: CompactionRequest, used: SummaryRecord | None
    ) -> str:
        try:
            record = await service.compact(request)
        except (ToolError, ModelError) as error:
            return f"The conversation was not compacted: {error} All messages are as they were."
        if record is None or record == used:
            return NOTHING_OLD
        return _rebirth_success(record) if request.rebirth else _success(record)

    async def shorten(self, used: SummaryRecord | None, cause: CompactionCause) -> SummaryRecord | None:
        """Compact the conversation so that a request fits; return the record to use instead of ``used``. None if that
        is not possible: the request stays as it is.

        Raises BusError while memory does not answer.
        """
        if self._service is None or self._context.request.history is not None:
            return None
        try:
            record = await self._service.compact(self._request(cause))
        except (ToolError, ModelError) as error:
            log.warning("conversation %s was not compacted: %s", self._context.request.conversation, error)
            return None
        return record if record != used and covers(record, self._context.history) else None

    async def is_too_long(self, request: ModelRequest, count: CountTokens) -> bool:
        """Report whether the request has too many tokens for its model, by the vendor's count, else by an estimate.

        The vendor is asked only if the upper estimate is too high. Most requests are far below.
        """
        if self._service is None or self._context.request.history is not None:
            return False
        if not self._service.is_due(estimate_input_tokens(request), self._model):
            return False
        counted = await count(request)
        return counted is not None and self._service.is_due(counted, self._model)

    async def _undo(self, service: CompactionService, used: SummaryRecord | None) -> str:
        # The record is the one of the journal: after a crash the next owner of the turn withdraws the same one, and not
        # the one before it.
        if used is None:
            return NOTHING_TO_UNDO
        request = self._request("command")
        await service.withdraw(request, used)
        left = await service.record_in_effect(request.block, request.conversation)
        if left is not None and left.previous == used.id:
            return "A newer summary was stored meanwhile. Repeat `/compact undo` to withdraw it."
        before = f"the summary of the first {left.count} again" if left is not None else "all of them again"
        return f"The summary of {used.count} messages is withdrawn. The model receives {before}."

    def _request(self, cause: CompactionCause, focus: str = "") -> CompactionRequest:
        request: TurnRequested = self._context.request
        return CompactionRequest(
            block=request.block,
            conversation=request.conversation,
            turn=request.turn,
            actor=request.actor,
            model=self._model,
            cause=cause,
            focus=focus,
            progress=self._show,
        )

    async def _show(self, sentence: str) -> None:
        await self._emit(StatusShown(name=COMPACTION_STATUS, text=sentence))


def _rebirth_success(record: SummaryRecord) -> str:
    return (
        f"All {record.count} messages so far are summarised, by {record.model}. The summary is in memory.md of this "
        "block, which every conversation of the block begins with; what it had before is under History. The messages "
        "stay stored. `/compact undo` returns to them; memory.md stays."
    )


def _success(record: SummaryRecord) -> str:
    return (
        f"The first {record.count} messages are summarised, by {record.model}. From now on the model receives the "
        "summary in their place; the messages stay stored. `/compact undo` withdraws the summary."
    )
