"""The choice of adapter and model, by configuration and preference, and the call through the middleware."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType

import anyio
from msgspec.structs import replace

from trunkline.contracts.models.adapter import (
    AnswerSource,
    AskModel,
    Finish,
    ModelAdapter,
    ModelEvent,
    ModelMiddleware,
    ModelRequest,
)
from trunkline.errors import ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.workers.monitor.content_capture import ContentCapture
from trunkline.workers.monitor.structured_output import ask_in_format
from trunkline.workers.monitor.transcript_repair import repair_transcript

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SelectedModel:
    """An adapter and the name of its model ("" = the adapter's default)."""

    adapter: ModelAdapter
    model: str

    @property
    def label(self) -> str:
        """``adapter/model``, as preferences and journals write it."""
        return f"{self.adapter.name}/{self.model}" if self.model else self.adapter.name


class ModelRegistry:
    """The adapters of this monitor and the middleware around every call.

    ``named`` are the models that the settings of adapters name, for preferences that name only an adapter.
    ``idle_timeout`` is the number of seconds without an event after which an adapter's answer fails.
    """

    def __init__(
        self,
        adapters: Sequence[ModelAdapter],
        default: str,
        named: Mapping[str, str] = MappingProxyType({}),
        middleware: Sequence[ModelMiddleware] = (),
        kill_switch: KillSwitch | None = None,
        capture: ContentCapture | None = None,
        *,
        idle_timeout: float,
    ) -> None:
        self._adapters: Mapping[str, ModelAdapter] = {adapter.name: adapter for adapter in adapters}
        self._default = default
        self._named = named
        self._middleware = tuple(middleware)
        self._kill_switch = kill_switch
        self._capture = capture
        self._idle_timeout = idle_timeout

    def choose(self, preference: str | None) -> SelectedModel:
        """Return the choice for ``adapter/model``, ``adapter`` or a model of the default adapter.

        Raises:
          ModelError: there is no such adapter; the detail lists the installed ones.
        """
        head, _, rest = (preference or "").partition("/")
        if head in self._adapters:
            return SelectedModel(self._adapters[head], rest or self._named.get(head, ""))
        if self._default in self._adapters:
            model = preference or self._named.get(self._default, "")
            return SelectedModel(self._adapters[self._default], model)
        known = ", ".join(sorted(self._adapters)) or "none"
        detail = f"no adapter named {self._default}; installed: {known}"
        raise ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", detail)

    def ask(self, choice: SelectedModel) -> AskModel:
        """Return the call to the adapter with the middleware around it, that of the first plugin outermost.

        The transcript is repaired after the middleware, so the adapter always gets a valid one. While the kill switch
        is engaged no model is called, and the call fails with a ModelError.
        """
        ask: AskModel = self._route
        if self._capture is not None:
            ask = self._capture.wrap(ask)
        ask = _with_repaired_transcript(ask)
        for middleware in reversed(self._middleware):
            ask = _wrap_middleware(middleware, ask)
        return lambda request: _refuse_stopped() if self._stopped() else ask(request)

    async def _route(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the adapter that it names, which a middleware may have changed.

        Raises:
          ModelError: there is no such adapter, or it does not send the files of the messages.
        """
        adapter = self._adapters.get(request.adapter)
        if adapter is None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", f"no adapter named {request.adapter}")
        if not adapter.sees and any(message.images for message in request.messages):
            raise ModelError(
                ErrorCode.PROVIDER_ERROR, "refused", f"the adapter {adapter.name} sends no images"
            )
        if not adapter.reads and any(message.documents for message in request.messages):
            raise ModelError(
                ErrorCode.PROVIDER_ERROR, "refused", f"the adapter {adapter.name} sends no documents"
            )
        if request.response_format is not None and not adapter.enforces_format(request):
            answer = ask_in_format(request, lambda request: self._stream(adapter, request))
        else:
            answer = self._stream(adapter, request)
        async with aclosing(answer) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    async def _stream(self, adapter: ModelAdapter, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        source = AnswerSource(adapter=adapter.name, vendor=adapter.vendor, requested=request.model)
        async with aclosing(adapter.stream(request)) as events:  # type: ignore[type-var]
            while (event := await self._next(events)) is not None:
                yield replace(event, source=source) if isinstance(event, Finish) else event

    async def _next(self, events: AsyncIterator[ModelEvent]) -> ModelEvent | None:
        """Return the next event, None at the end. Raises ModelError when the model is silent for too long.

        The limit is here, closest to the adapter, so that a middleware may pause, and may call another model in place
        of a silent one.
        """
        with anyio.move_on_after(self._idle_timeout):
            return await anext(events, None)
        raise ModelError(ErrorCode.PROVIDER_ERROR, "timeout", f"silent for {self._idle_timeout:g} s")

    def _stopped(self) -> bool:
        return self._kill_switch is not None and self._kill_switch.is_engaged

    async def aclose(self) -> None:
        """Close the connections of all adapters."""
        for adapter in self._adapters.values():
            try:
                await adapter.aclose()
            except Exception:
                log.exception("adapter %s could not be closed", adapter.name)


def _with_repaired_transcript(ask: AskModel) -> AskModel:
    return lambda request: ask(replace(request, messages=repair_transcript(request.messages)))


def _wrap_middleware(
    middleware: ModelMiddleware, proceed: AskModel
) -> Callable[[ModelRequest], AsyncIterator[ModelEvent]]:
    return lambda request: middleware(request, proceed)


async def _refuse_stopped() -> AsyncIterator[ModelEvent]:
    raise ModelError(ErrorCode.PANIC, "refused", STOPPED_SENTENCE)
    yield  # makes this an asynchronous generator, as an adapter's stream is
