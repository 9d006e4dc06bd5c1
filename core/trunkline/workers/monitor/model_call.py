"""One model call: events in, text to the feed, one journal entry out. Provider errors never raise."""

import json
import logging
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
from opentelemetry import trace

from trunkline._util.json_safe import json_problem
from trunkline._util.text import printable
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS, ReasoningBlock, ToolCall, Usage
from trunkline.contracts.models.adapter import (
    AnswerSource,
    AskModel,
    Call,
    Finish,
    ModelEvent,
    ModelRequest,
    ModelStatus,
    Reasoning,
    ReasoningDone,
    Text,
    ToolRan,
)
from trunkline.contracts.models.prices import PriceTable
from trunkline.contracts.turns.feed_events import provider_tool_events
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.contracts.turns.journal_messages import ModelCallFailed, ModelCallFinished, ProviderToolResult
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode, ModelError
from trunkline.telemetry import semconv
from trunkline.workers.monitor.feed_writer import TextStream
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline.workers.monitor.model_registry import SelectedModel
from trunkline_bus import BusError, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

MODEL_STATUS = "model"
"""The name of the status that says what a model call waits for."""

FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "tool_calls", "max_tokens", "content_filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallConfig:
    """The limits and prices of every model call.

    ``max_answer`` is the largest answer in bytes. ``explainer`` formats the reason of a failure.
    """

    max_answer: int
    prices: PriceTable
    explainer: ModelErrorFormatter


class AnswerBuilder:
    """The answer of a model call so far: text, reasoning and calls, ``limit`` bytes together."""

    def __init__(self, step: int, stream: TextStream, limit: int) -> None:
        self.step = step
        self.stream = stream
        self._room = limit - len(stream.text.encode())
        self.calls: list[ToolCall] = []
        self.ran: list[ProviderToolResult] = []
        self.reasoning_blocks: list[ReasoningBlock] = []
        self.finish: Finish | None = None
        self.first_chunk = 0.0
        """Seconds until the first event."""

    @property
    def is_full(self) -> bool:
        """Report whether the answer exceeded the limit. The excess was dropped."""
        return self._room < 0

    def add(self, event: ModelEvent) -> None:
        """Add an event, truncated to the room that is left. Raises ModelError for an event after the end."""
        if self.finish is not None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", "an event after the finish")
        match event:
            case Text(text):
                self.stream.add(self._truncate(text))
            case Reasoning(text):
                self.stream.add(self._truncate(text), reasoning=True)
            case ReasoningDone(block):
                if not json_problem(block.data) and self._fits(block):
                    self.reasoning_blocks.append(block)
            case Call(call):
                call = json_safe_call(call)
                if self._fits(call):
                    self.calls.append(call)
            case ToolRan(call, output, error):
                call = json_safe_call(call)
                if self._fits(call):
                    output, at = self._truncate(output), len(self.stream.text)
                    self.ran.append(ProviderToolResult(call=call, output=output, error=error, at=at))
            case Finish():
                self.finish = event

    def build(self, used: set[str]) -> ModelCallFinished:
        """Return the complete answer. Raises ModelError when the model never finished."""
        if self.is_full:
            self.finish = Finish(reason="max_tokens")
        if self.finish is None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "interrupted", "the stream ended without a finish")
        return ModelCallFinished(
            step=self.step,
            text=self.stream.text,
            reasoning=self.stream.reasoning,
            late_reasoning=self.stream.late_reasoning,
            tool_calls=with_unique_ids(self.calls, self.step, used),
            ran=tuple(self.ran),
            finish_reason=_finish_reason(self.finish.reason),
            usage=self.finish.usage,
            first_chunk=self.first_chunk,
            cost=self.finish.cost,
            reasoning_blocks=tuple(self.reasoning_blocks),
            answered_by=self.finish.source.label if self.finish.source is not None else "",
        )

    def _truncate(self, text: str) -> str:
        """Return as much of the text as fits, with a question mark for each lone surrogate, which no message
        can carry."""
        whole = text.encode(errors="replace")
        fitting = whole[: max(0, self._room)]
        self._room -= len(whole)
        return fitting.decode(errors="ignore")

    def _fits(self, part: ToolCall | ReasoningBlock) -> bool:
        """Report whether there is room for this part of the answer, and use that room."""
        self._room -= len(msgspec.json.encode(part))
        return not self.is_full


def _finish_reason(reason_text: str) -> FinishReason:
    """Return the reason as one of FINISH_REASONS, else ``stop``.

    It must be the constant object: msgspec omits a default only when it is the same object, so an equal
    string would make a replay produce other bytes.
    """
    for reason in FINISH_REASONS:
        if reason == reason_text:
            return reason
    return "stop"


def json_safe_call(call: ToolCall) -> ToolCall:
    """Return the call in a form that messages can carry.

    Arguments that cannot be carried become their JSON text. The tool's worker refuses them with the reason,
    and the model may try again.
    """
    why = json_problem(call.arguments)
    if not why and not json_problem((call.id, call.name)):
        return call
    arguments = {RAW_ARGUMENTS: _as_text(call.arguments, why)} if why else call.arguments
    return msgspec.structs.replace(
        call, id=printable(call.id), name=printable(call.name), arguments=arguments
    )


def _as_text(arguments: dict[str, Any], why: str) -> str:
    """Return the arguments as ASCII JSON, in which lone surrogates are escaped."""
    try:
        return json.dumps(arguments)
    except (ValueError, TypeError, RecursionError):
        return f"The arguments hold {why}."


def with_unique_ids(calls: list[ToolCall], step: int, used: set[str]) -> tuple[ToolCall, ...]:
    """Return the calls with ids that are unique in the turn: some servers begin at ``call_0`` in each
    answer."""
    unique = []
    for number, call in enumerate(calls):
        if not call.id or call.id in used:
            call = msgspec.structs.replace(call, id=f"call_{step}_{number}_{call.id}".rstrip("_"))
        used.add(call.id)
        unique.append(call)
    return tuple(unique)


def model_attributes(adapter: str, vendor: str, model: str) -> dict[str, str]:
    """Return the span attributes of the model. An unnamed model gets no attribute, because an empty one would
    be wrong."""
    named = {semconv.GEN_AI_REQUEST_MODEL: model} if model else {}
    label = f"{adapter}/{model}" if model else adapter
    return {semconv.GEN_AI_PROVIDER: vendor or adapter, semconv.MODEL: label, **named}


def _usage_attributes(usage: Usage) -> dict[str, int]:
    """Return the tokens of an answer for its span. Those of the prompt cache are a part of the input tokens."""
    return {
        semconv.GEN_AI_INPUT_TOKENS: usage.input_tokens,
        semconv.GEN_AI_OUTPUT_TOKENS: usage.output_tokens,
        semconv.GEN_AI_CACHE_READ_TOKENS: usage.cached_tokens,
        semconv.GEN_AI_CACHE_WRITE_TOKENS: usage.cache_write_tokens,
    }


class ModelCaller:
    """Calls a model once and streams its text."""

    def __init__(self, ask: AskModel, choice: SelectedModel, call_config: ModelCallConfig) -> None:
        self._ask = ask
        self._choice = choice
        self._call_config = call_config
        self.source = AnswerSource(
            adapter=choice.adapter.name, vendor=choice.adapter.vendor, requested=choice.model
        )
        """The adapter and model that were called; after the answer, those that answered."""
        self.model = choice.model
        """The model that answered, as the vendor names it; before the answer, the model that was chosen."""

    async def call(
        self, request: ModelRequest, step: int, stream: TextStream, used: set[str]
    ) -> ModelCallFinished | ModelCallFailed:
        """Call the model and return the entry to record.

        The text is in ``stream`` even when this is cancelled. The enclosing span (of a turn, or of a tool's
        question) also gets the attributes of the model that answered. Raises BusError if the bus does not let the
        request be recorded.
        """
        outer_span, answer = (
            trace.get_current_span(),
            AnswerBuilder(step, stream, self._call_config.max_answer),
        )
        with start_span(
            tracer,
            f"{semconv.CHAT} {request.model}".strip(),
            kind=trace.SpanKind.CLIENT,
            attributes=self._attributes(request, step),
        ) as span:
            try:
                entry = await self._collect(request, answer, used, span)
            except ModelError as error:
                return self._failed(error, step, stream, span)
            except (
                BusError
            ):  # the request cannot be recorded or budgeted: no model failed, and the call may be repeated
                raise
            except Exception as error:  # an adapter or a middleware broke its contract
                log.exception("the model call of turn %s failed", request.turn)
                fault = ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", type(error).__name__)
                return self._failed(fault, step, stream, span)
            if answer.finish is not None and answer.finish.model:
                self.model = answer.finish.model
                self.source = answer.finish.source or self.source
                response_attributes = self._response_attributes()
                span.set_attributes(response_attributes)
                outer_span.set_attributes(response_attributes)
            span.set_attributes(_usage_attributes(entry.usage))
            span.set_attribute(semconv.GEN_AI_FINISH_REASONS, [entry.finish_reason])
            return entry

    @property
    def labels(self) -> tuple[str, str]:
        """``adapter/model`` of the model that was requested and of the model that answered."""
        return self.source.label, f"{self.source.adapter}/{self.model}"

    async def _collect(
        self, request: ModelRequest, answer: AnswerBuilder, used: set[str], span: trace.Span
    ) -> ModelCallFinished:
        failure: Exception | None = None
        async with anyio.create_task_group() as sending:
            sending.start_soon(answer.stream.run)
            try:
                await self._events(request, answer, span)
            except Exception as error:  # raised again below, because the task group would wrap it
                failure = error
            sending.cancel_scope.cancel()
        await answer.stream.flush()
        if failure is not None:
            raise failure
        return answer.build(used)

    async def _events(self, request: ModelRequest, answer: AnswerBuilder, span: trace.Span) -> None:
        started_at = anyio.current_time()
        async with aclosing(self._ask(request)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, ModelStatus):
                    await answer.stream.emit(StatusShown(name=MODEL_STATUS, text=event.text))
                    continue
                if not answer.first_chunk:
                    span.add_event(semconv.FIRST_TOKEN)
                    answer.first_chunk = round(anyio.current_time() - started_at, 6) or 1e-6
                answer.add(event)
                if answer.is_full:
                    log.warning(
                        "the answer in turn %s is cut at %d bytes", request.turn, self._call_config.max_answer
                    )
                    return
                if isinstance(event, ToolRan):
                    await answer.stream.emit(*provider_tool_events(step=answer.step, ran=answer.ran[-1]))

    def _attributes(self, request: ModelRequest, step: int) -> dict[str, str | int]:
        conversation = {semconv.GEN_AI_CONVERSATION_ID: request.conversation} if request.conversation else {}
        return {
            semconv.GEN_AI_OPERATION: "chat",
            **model_attributes(request.adapter, self._choice.adapter.vendor, request.model),
            **conversation,
            semconv.STEP: step,
            semconv.PURPOSE: request.purpose,
        }

    def _response_attributes(self) -> dict[str, str]:
        """Return the attributes of the model that answered; the adapter or a middleware may have chosen it."""
        source = self.source
        asked = model_attributes(source.adapter, source.vendor, source.requested or self.model)
        return {**asked, semconv.GEN_AI_RESPONSE_MODEL: self.model}

    def _failed(self, error: ModelError, step: int, stream: TextStream, span: trace.Span) -> ModelCallFailed:
        log.warning("model call failed: %s", error)
        span.set_status(trace.StatusCode.ERROR, error.fault)
        span.set_attribute(semconv.ERROR_TYPE, error.fault)
        why = self._call_config.explainer.describe(error, self._choice.label)
        return ModelCallFailed(step=step, code=error.code, fault=error.fault, detail=why, partial=stream.text)
