"""Builds the context of a turn: conversation, tools, preferences and context parts. It writes nothing and
calls no model."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import anyio
import msgspec
from opentelemetry import trace

from trunkline.config.settings import MonitorSettings
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.model_choice import CHAT
from trunkline.contracts.conversations.messages import ConversationSlice, LoadConversation, Message, Role
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.tools.messages import ToolSchema, ToolSpec
from trunkline.contracts.turns.context import ContextGap, ContextPart, ContextSource, TurnInfo
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.contracts.turns.journal_messages import RecordedPart
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.turn_route import TurnRoute
from trunkline.contracts.turns.turn_router import TurnRouter
from trunkline.policy import ActorPermissions
from trunkline.policy.turn_permissions import initial_permissions
from trunkline.runtime.context_window import ContextWindows
from trunkline.telemetry import semconv
from trunkline.workers.monitor.block_profile import REPLY_TIMEOUT, BlockProfile, BlockProfileCache
from trunkline.workers.monitor.context_budget import fit_parts
from trunkline.workers.monitor.shortened_results import shorten_old_results
from trunkline.workers.monitor.tool_selection import (
    ToolSelectionSettings,
    missing_tools,
    select_tools,
    selection_settings,
)
from trunkline.workers.monitor.turn_memory import turn_files, turn_memory
from trunkline.workers.monitor.turn_messages import message_id
from trunkline_bus import Bus

log = logging.getLogger(__name__)

SOURCE_TIMEOUT = 5.0

ContextItem = ContextPart | StatusShown | ContextGap
"""An item that a context source may return."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The context that a turn begins with.

    ``history`` is the conversation before the turn, ``sent_history`` the same as the model is sent it, with old results
    shortened. ``conversation_model`` is the model that was chosen for the conversation, if any, and ``summary_record``
    its summary record in effect. With more tools than ``discovery_threshold`` the model finds most of them through
    discovery. ``route`` is what a turn router decided, None if none did.
    """

    request: TurnRequested
    history: tuple[Message, ...]
    sent_history: tuple[Message, ...]
    profile: BlockProfile
    discovery_threshold: int
    conversation_model: str | None = None
    summary_record: SummaryRecord | None = None
    route: TurnRoute | None = None

    @property
    def block(self) -> BlockConfig:
        """The settings of the block."""
        return self.profile.block

    def schemas(self, new: Sequence[Message]) -> tuple[ToolSchema, ...]:
        """Return the tools that the model is offered after the messages ``new`` of this turn.

        A tool of the client replaces Trunkline's tool of the same name.
        """
        tools = self.profile.tools
        subset = self.route.tools if self.route is not None else None
        shown = (*self.sent_history, *new)
        specs = select_tools(tools.specs, tools.own, self.selection_settings, shown, tools.restricted, subset)
        own = tuple(tools.schemas[spec.name] for spec in specs)
        if not self.request.client_tools:
            return own
        clients = {tool.name: tool for tool in self.request.client_tools}
        return (*(tool for tool in own if tool.name not in clients), *clients.values())

    @property
    def all_tools(self) -> tuple[ToolSchema | ToolSpec, ...]:
        """Every tool, shown to the model or not, including those that the block may not use; the client's
        first."""
        tools = self.profile.tools
        return (*self.request.client_tools, *tools.specs, *tools.own)

    @property
    def selection_settings(self) -> ToolSelectionSettings:
        """The settings for showing tools: the block's, else the owner's, else by the number of tools that may
        be used."""
        profile, tools = self.profile, self.profile.tools
        mode = self.block.discovery or profile.preferences.discovery or "auto"
        count = len(tools.specs) - len(tools.restricted)
        return selection_settings(mode, profile.always_send, count, self.discovery_threshold)

    @property
    def missing_tools(self) -> tuple[str, ...]:
        """The tools that were loaded in this conversation and no longer exist."""
        return missing_tools(self.profile.tools.specs, self.profile.tools.own, self.history)

    @property
    def preferred_model(self) -> str | None:
        """The preferred model: the message's, else the conversation's, else the route's, else the block's, else the
        owner's.

        Raises ModelError when a file that may name the model cannot be read.
        """
        preferred = self.profile.preferred_model(self.request.model, CHAT, self.conversation_model)
        if self.is_model_named or self.route is None:
            return preferred
        return self.route.model or preferred

    @property
    def is_model_named(self) -> bool:
        """Report whether the client or a person named the model for this turn or its conversation."""
        return self.request.model is not None or self.conversation_model is not None


class ContextMessages(NamedTuple):
    """The messages of the context, the statuses that are sent to clients, and the parts of the messages."""

    messages: tuple[Message, ...]
    statuses: tuple[StatusShown, ...] = ()
    parts: tuple[RecordedPart, ...] = ()


class ContextBuilder:
    """Builds the contexts of turns. Call ``open`` before use. ``windows`` are those of the models. The profile of a
    block contains the files that ``sources`` and ``routers`` read."""

    def __init__(
        self,
        bus: Bus,
        sources: Sequence[ContextSource],
        settings: MonitorSettings,
        windows: ContextWindows,
        routers: Sequence[TurnRouter] = (),
    ) -> None:
        self._bus = bus
        self._sources = tuple(sources)
        self._settings = settings
        self.windows = windows
        self._profiles = BlockProfileCache(
            bus, (name for one in (*sources, *routers) for name in getattr(one, "files", ()))
        )
        self.open = self._profiles.open
        self.close = self._profiles.close
        self.profile = self._profiles.get

    async def build(self, request: TurnRequested, cached: list[Message]) -> TurnContext:
        """Load the profile and the history concurrently and return the context.

        ``cached`` are the first messages of the conversation; new ones are added to it. Raises BusError
        when a worker does not answer within REPLY_TIMEOUT seconds.
        """
        if request.history is not None:
            profile = await self._profiles.get(request.block)
            return self._turn_context(request, request.history, profile)
        loaded: list[ConversationSlice] = []
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._load_history, request, cached, loaded)
                profile = await self._profiles.get(request.block)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        context = self._turn_context(request, cached, profile)
        found = loaded[0]
        return replace(context, conversation_model=found.model, summary_record=found.summary_record)

    def _turn_context(
        self,
        request: TurnRequested,
        messages: Iterable[Message],
        profile: BlockProfile,
    ) -> TurnContext:
        profile = _restricted(profile, initial_permissions(request))
        history = _without_turn(request, messages)
        sent, threshold = self.sent_history(request, history), self._settings.discovery_threshold
        return TurnContext(request, history, sent, profile, threshold)

    def sent_history(self, request: TurnRequested, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return the history as a model is sent it. The transcript that a client sent stays as it is."""
        if request.history is not None and request.fork is None:
            return tuple(history)
        return self.shortened(history)

    def shortened(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages of a conversation with old results shortened."""
        return shorten_old_results(messages, self._settings.old_results)

    def info(self, context: TurnContext, model: str = "") -> TurnInfo:
        """Return the information about a turn that plugins get."""
        request = context.request
        return TurnInfo(
            request=request,
            block=context.block,
            memory=turn_memory(self._bus, request),
            model=model,
            files=turn_files(request, context.profile.files),
            history=context.history,
            window=self.window(model),
        )

    async def context_messages(self, context: TurnContext, model: str) -> ContextMessages:
        """Return the parts of the context sources after the bootstrap line, within the budget for
        ``model``."""
        turn, settings = context.request.turn, self._settings
        items = await self._collect_items(self.info(context, model))
        _trace_gaps(one for one in items if isinstance(one, ContextGap))
        own_parts = (*_missing_tools_part(context.missing_tools), *_channel_part(context.request))
        parts = [*own_parts, *(one for one in items if isinstance(one, ContextPart))]
        budget = int(self.windows.budgeted_window(model) * settings.context_share)
        constant, changing, recorded = fit_parts(settings.bootstrap, parts, budget)
        messages = [_message(turn, "system", constant), *_instructions(context.request)]
        if changing:
            messages.append(_message(turn, "user", changing))
        statuses = tuple(one for one in items if isinstance(one, StatusShown))
        return ContextMessages(tuple(messages), statuses, recorded)

    def window(self, model: str) -> int:
        """Return the number of tokens that a model (``adapter/model``) accepts."""
        return self.windows.window(model)

    async def _collect_items(self, info: TurnInfo) -> list[ContextItem]:
        """Return the items of all sources, in the order of the sources."""
        found: list[Sequence[ContextItem]] = [()] * len(self._sources)
        async with anyio.create_task_group() as tasks:
            for number, source in enumerate(self._sources):
                tasks.start_soon(self._ask_source, source, info, found, number)
        return [one for some in found for one in some]

    async def _ask_source(
        self,
        source: ContextSource,
        info: TurnInfo,
        items: list[Sequence[ContextItem]],
        number: int,
    ) -> None:
        try:
            with anyio.move_on_after(SOURCE_TIMEOUT) as deadline:
                items[number] = tuple(await source(info))
            if deadline.cancelled_caught:
                late = f"it took more than {SOURCE_TIMEOUT:g} s"
                log.warning("context source %s is left out: %s", source.name, late)
                items[number] = (ContextGap(source.name, late),)
        except Exception as error:
            log.exception("context source %s failed and is left out", source.name)
            items[number] = (ContextGap(source.name, f"it failed with {type(error).__name__}"),)

    async def _load_history(
        self, request: TurnRequested, cached: list[Message], loaded: list[ConversationSlice]
    ) -> None:
        """Add the conversation's new messages to ``cached``, and the last slice of it to ``loaded``."""
        found = await self._slice(request, len(cached))
        if found.count < len(cached):  # the conversation was shortened: load all of it
            cached.clear()
            found = await self._slice(request, 0)
        cached.extend(found.messages)
        loaded.append(found)

    async def _slice(self, request: TurnRequested, after: int) -> ConversationSlice:
        query = LoadConversation(block=request.block, conversation=request.conversation, after=after)
        return await self._bus.call(LOAD_MESSAGES, query, timeout=REPLY_TIMEOUT, repeatable=True)


def _restricted(profile: BlockProfile, permissions: ActorPermissions) -> BlockProfile:
    """Return the profile without the tools that the caller's permissions exclude.

    The model is not shown them, and ``/tool`` lists them as not permitted. The tools worker decides about
    each call.
    """
    tools = profile.tools
    excluded = frozenset(
        spec.name for spec in tools.specs if not permissions.allows_tool(spec.name, spec.identity)
    )
    own = tuple(spec for spec in tools.own if permissions.allows_tool(spec.name, spec.identity))
    if not excluded and len(own) == len(tools.own):
        return profile
    return replace(profile, tools=replace(tools, own=own, restricted=tools.restricted | excluded))


def _without_turn(request: TurnRequested, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the history without this turn's own messages. Memory has them already when this turn was stored just
    before a crash."""
    return tuple(message for message in messages if message.turn != request.turn)


def _missing_tools_part(missing: tuple[str, ...]) -> tuple[ContextPart, ...]:
    """Return the note about tools that were loaded earlier and no longer exist."""
    if not missing:
        return ()
    text = f"Tools that were loaded in this conversation and no longer exist: {', '.join(missing)}."
    return (ContextPart(source="tools", text=text, changing=True),)


def _channel_part(request: TurnRequested) -> tuple[ContextPart, ...]:
    """Return the part with the channel's description of how it shows answers to people.

    The channel writes the description, so the model receives it as data. The part is the last one, so that a message
    from another channel does not change the parts before it.
    """
    if isinstance(request.shows, msgspec.UnsetType):
        return ()
    return (ContextPart(source=f"channel {request.channel}", text=request.shows, priority=1, share=0.05),)


def _trace_gaps(gaps: Iterable[ContextGap]) -> None:
    """Record in the turn's trace which context sources are missing."""
    for gap in gaps:
        trace.get_current_span().add_event(
            semconv.CONTEXT_LEFT_OUT, {semconv.CONTEXT_SOURCE: gap.source, semconv.REASON: gap.reason}
        )


def _instructions(request: TurnRequested) -> tuple[Message, ...]:
    """Return the client's instructions for this turn. They follow the constant part, which other turns share."""
    if isinstance(request.instructions, msgspec.UnsetType):
        return ()
    id = message_id(request.turn, "instructions")
    return (Message(id=id, role="system", content=request.instructions),)


def _message(turn: str, role: Role, text: str) -> Message:
    return Message(id=message_id(turn, "context", role), role=role, content=text)
