"""The choice of adapter and model, by configuration and preference, and the call through the middleware."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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
    Text,
    wraps_each_request,
)
from trunkline.contracts.models.prices import PriceTable
from trunkline.errors import ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.runtime.cost_ledger import NoLedger, RequestLedger, short_model_name
from trunkline.runtime.model_middleware import wrap_with_middleware
from trunkline.workers.monitor.attachment_loader import AttachmentLoader
from trunkline.workers.monitor.content_capture import ContentCapture
from trunkline.workers.monitor.structured_output import ask_in_format
from trunkline.workers.monitor.tool_choice import ask_for_call
from trunkline.workers.monitor.transcript_repair import repair_transcript
from trunkline_bus import new_id

log = logging.getLogger(__name__)

MAX_REMEMBERED_MODELS = 100
"""The number of warnings about prices that are remembered, so that names of models cannot fill log and memory."""


NO_REASONING: Mapping[str, Any] = MappingProxyType({"reasoning_effort": "none"})
"""The parameter that switches reasoning off, with the name that it has at every bundled adapter."""


@dataclass(frozen=True, slots=True)
class SelectedModel:
    """An adapter and the name of its model ("" = the adapter's default)."""

    adapter: ModelAdapter
    model: str

    @property
    def label(self) -> str:
        """``adapter/model``, as preferences and journals write it."""
        return f"{self.adapter.name}/{self.model}" if self.model else self.adapter.name

    def accepted_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a client that the model takes; another API may have more."""
        table = {one.name: one for one in self.adapter.parameters if one.takes(self.model)}
        return {
            name: value
            for name, value in parameters.items()
            if name in table and not table[name].problem(value)
        }


class ModelRegistry:
    """The adapters of this monitor and the middleware around every call and every request.

    ``named`` are the models that the settings of adapters name, for preferences that name only an adapter. ``prices``
    price every answer, and ``ledger`` records every request. ``idle_timeout`` is the number of seconds without an event
    after which an adapter's answer fails.
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
        prices: PriceTable,
        ledger: RequestLedger,
        idle_timeout: float,
        attachments: AttachmentLoader | None = None,
    ) -> None:
        self._adapters: Mapping[str, ModelAdapter] = {adapter.name: adapter for adapter in adapters}
        self._default = default
        self._named = named
        self._around_calls = tuple(one for one in middleware if not wraps_each_request(one))
        self._around_requests = tuple(one for one in middleware if wraps_each_request(one))
        self._prices = prices
        self._ledger = ledger
        self._unpriced: set[str] = set()
        self._kill_switch = kill_switch
        self._capture = capture
        self._idle_timeout = idle_timeout
        self._attachments = attachments

    @property
    def around_requests(self) -> Sequence[ModelMiddleware]:
        """The middleware around requests, such as a budget, outermost first."""
        return self._around_requests

    @property
    def configured(self) -> tuple[str, ...]:
        """The names of the adapters that have what they need."""
        return tuple(name for name, adapter in self._adapters.items() if adapter.configured)

    def adapter(self, name: str) -> ModelAdapter:
        """Return the adapter of this name. Raises KeyError if there is none."""
        return self._adapters[name]

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
        ask = wrap_with_middleware(self._around_calls, _with_repaired_transcript(ask))
        return lambda request: _refuse_stopped() if self._stopped() else ask(request)

    def ask_once(self) -> AskModel:
        """Return the call to the adapter without the middleware around calls: nothing is repeated, and no other model
        is asked. Budgets and the ledger see the request. The kill switch holds as in ``ask``.
        """
        return lambda request: _refuse_stopped() if self._stopped() else self._route(request)

    async def count_tokens(self, choice: SelectedModel, request: ModelRequest) -> int | None:
        """Return the input tokens of the request as the vendor counts them; None if the vendor does not count or fails.

        The request passes the middleware around calls first, because a text that must not reach the vendor must not
        reach it to be counted.
        """
        counted: list[int | None] = []

        async def count(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            try:
                counted.append(await self._adapter(request).count_tokens(request))
            except ModelError as error:  # not raised: nothing is retried, and no circuit opens, for a count
                log.info("%s did not count the tokens of a request: %s", choice.label, error)
            yield Text("counted")
            yield Finish()

        if self._stopped():
            return None
        ask = wrap_with_middleware(self._around_calls, _with_repaired_transcript(count))
        try:
            async for _ in ask(request):
                pass
        except ModelError as error:  # of a middleware, which refuses the request itself in the same way
            log.info("a request to %s was not counted: %s", choice.label, error)
        return counted[-1] if counted else None

    async def _route(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the adapter that the request names, which a middleware may have changed, for the complete answer.

        Raises:
          ModelError: there is no such adapter, it does not send the files of the messages, or memory does not return
            them.
        """
        adapter = self._adapter(request)
        if self._attachments is not None:
            request = await self._attachments.load(request, adapter)
        if not adapter.sees and any(message.images for message in request.messages):
            raise ModelError(
                ErrorCode.INVALID_REQUEST, "refused", f"the adapter {adapter.name} sends no images"
            )
        if not adapter.reads and any(message.documents for message in request.messages):
            raise ModelError(
                ErrorCode.INVALID_REQUEST, "refused", f"the adapter {adapter.name} sends no documents"
            )
        if request.response_format is not None and not adapter.enforces_format(request):
            answer = ask_in_format(request, self._ask_chosen)
        else:
            answer = self._ask_chosen(request)
        async with aclosing(answer) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    def _ask_chosen(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request, and make sure that the answer calls a tool if it must."""
        if request.tool_choice.mode == "required" and request.tools:
            return ask_for_call(request, self._send)
        return self._send(request)

    def _send(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send one request, with its model and an id of its own, through the middleware around requests."""
        adapter = self._adapter(request)
        model = request.model or adapter.default_model
        parameters = request.parameters
        if not request.reasoning:
            wanted = {**parameters, **NO_REASONING}
            parameters = SelectedModel(adapter, model).accepted_parameters(wanted)
        request = replace(request, id=new_id("request"), model=model, parameters=parameters)
        if not self._around_requests:
            return self._stream(request)
        return wrap_with_middleware(self._around_requests, _with_repaired_transcript(self._stream))(request)

    async def _stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to its adapter, and record it in the cost ledger."""
        adapter = self._adapter(request)
        if request.key and not adapter.takes_key:
            raise ModelError(
                ErrorCode.PROVIDER_ERROR, "refused", f"the adapter {adapter.name} takes no other key"
            )
        source = AnswerSource(adapter=adapter.name, vendor=adapter.vendor, requested=request.model)
        ledger = NoLedger() if adapter.derived else self._ledger
        async with ledger.request(request, source) as record, aclosing(adapter.stream(request)) as events:  # type: ignore[type-var]
            while (event := await self._next(events)) is not None:
                if isinstance(event, Finish):
                    event = replace(event, model=short_model_name(event.model))
                    event = await record.finish(self._priced(event, source))
                else:
                    record.add(event)
                yield event

    def _adapter(self, request: ModelRequest) -> ModelAdapter:
        adapter = self._adapters.get(request.adapter)
        if adapter is None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", f"no adapter named {request.adapter}")
        return adapter

    def _priced(self, finish: Finish, source: AnswerSource) -> Finish:
        """Return the end of an answer with its source and its cost. The requested name of the model has precedence over
        the name that the vendor answers with."""
        answering = f"{source.adapter}/{finish.model}" if finish.model else source.label
        rate = self._prices.find_rate(source.label, answering)
        if rate is None:
            self._warn_once(
                f'{answering} has no price and counts as free; set one in [models.prices."{answering}"]'
            )
            return replace(finish, source=source)
        if not finish.usage.input_tokens and rate.base.highest_input:
            self._warn_once(f"{answering} does not say how many tokens it used; its cost is estimated")
        return replace(finish, source=source, cost=rate.cost(finish.usage), price_version=rate.version)

    def _warn_once(self, what: str) -> None:
        if what not in self._unpriced and len(self._unpriced) < MAX_REMEMBERED_MODELS:
            self._unpriced.add(what)
            log.warning(what)

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


async def _refuse_stopped() -> AsyncIterator[ModelEvent]:
    raise ModelError(ErrorCode.PANIC, "refused", STOPPED_SENTENCE)
    yield  # makes this an asynchronous generator, as an adapter's stream is
