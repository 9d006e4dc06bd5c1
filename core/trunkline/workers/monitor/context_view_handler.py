"""Tells what a model was sent in a turn, and how much of it each part is. The command line uses the viewer without a
monitor.
"""

from collections.abc import Awaitable, Callable, Sequence

from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.contracts.turns.journal_messages import JournalEntry
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.errors import ErrorCode
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.context_view_builder import RecordedCall, last_model_call, sent_parts
from trunkline.workers.monitor.fork_history import LOAD_TIMEOUT, messages_before_turn
from trunkline.workers.monitor.model_history import summarised_history
from trunkline_bus import Bus, BusError, Refusal, Request

MessageLoader = Callable[[TurnRequested], Awaitable[Sequence[Message]]]
"""Returns all stored messages of a turn's conversation."""


class ContextViewer:
    """Reads context views. Writes nothing and calls no model."""

    def __init__(self, bus: Bus, builder: ContextBuilder, load: MessageLoader) -> None:
        self._bus = bus
        self._builder = builder
        self._load = load

    async def view(self, asked: GetContext) -> ContextView:
        """Return what a model was sent in the last model call of a turn, by default of the last turn that asked one.
        Raises Refusal with ``not_found`` if there is no journal or no model call, and BusError when another worker does
        not answer."""
        turn, call = await self._find(asked)
        started = call.turn.started
        assert started is not None  # the first entry of each journal
        whole = self._builder.sent_history(started.request, await self._history(started.request))
        return ContextView(
            conversation=asked.conversation,
            turn=turn,
            step=call.step,
            model=call.model,
            window=self._builder.window(call.model),
            input_tokens=call.usage.input_tokens,
            cached_tokens=call.usage.cached_tokens,
            parts=sent_parts(call, summarised_history(whole, call.record), texts=asked.texts),
        )

    async def _find(self, asked: GetContext) -> tuple[str, RecordedCall]:
        """Return the turn and its last model call. Commands, such as ``/compact``, are turns that ask no model."""
        turn, entries = await self._journal(asked)
        if (call := last_model_call(entries)) is not None:
            return turn, call
        if asked.turn is not None:
            raise Refusal(ErrorCode.NOT_FOUND, f"Turn {turn} asked no model.")
        turns: dict[str, list[JournalEntry]] = {}
        async for stored in self._bus.history(JOURNAL, after=0, conversation=asked.conversation):
            turns.setdefault(stored.data.turn, []).extend(stored.data.entries)
        for turn, entries in reversed(turns.items()):
            if (call := last_model_call(entries)) is not None:
                return turn, call
        raise Refusal(ErrorCode.NOT_FOUND, "No turn of the conversation asked a model.")

    async def _journal(self, asked: GetContext) -> tuple[str, list[JournalEntry]]:
        """Return the turn and its entries."""
        conversation, turn = asked.conversation, asked.turn
        of_turn = self._bus.last(JOURNAL, conversation=conversation, turn=turn) if turn else None
        last = await (of_turn or self._bus.last(JOURNAL, conversation=conversation))
        if last is None:
            raise Refusal(
                ErrorCode.NOT_FOUND,
                f"The conversation has no journal of {f'turn {turn}' if turn else 'a turn'}. Journals are kept for "
                "retention.journal_days.",
            )
        records = self._bus.history(JOURNAL, after=0, **last.keys)
        return last.data.turn, [entry async for stored in records for entry in stored.data.entries]

    async def _history(self, request: TurnRequested) -> Sequence[Message]:
        """Return the messages before the turn."""
        if request.history is not None:
            return request.history
        return messages_before_turn(await self._load(request), request)


class ContextViewHandler:
    """The monitor's handler."""

    def __init__(self, bus: Bus, builder: ContextBuilder) -> None:
        self._bus = bus
        self._viewer = ContextViewer(bus, builder, self._load)

    async def get_context(self, request: Request[GetContext]) -> ContextView:
        """Return a context view. Refused as ``ContextViewer.view`` says, and with ``engine_unavailable`` while memory
        does not answer."""
        try:
            return await self._viewer.view(request.data)
        except BusError as error:
            code = ErrorCode.ENGINE_UNAVAILABLE
            raise Refusal(code, "The context cannot be read now: memory does not answer.") from error

    async def _load(self, request: TurnRequested) -> Sequence[Message]:
        query = LoadConversation(block=request.block, conversation=request.conversation)
        found = await self._bus.call(LOAD_MESSAGES, query, timeout=LOAD_TIMEOUT, repeatable=True)
        return found.messages
