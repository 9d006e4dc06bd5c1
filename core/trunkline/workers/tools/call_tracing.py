"""The span and the metrics of a tool call, by the GenAI conventions. Uses only the OpenTelemetry API.

A call that a person approves is sent twice; the first request only asks. A call whose worker drains is sent again to
another worker. One call is nevertheless one ``execute_tool`` span: the conventions' attributes are set at the end,
and only by the attempt that executed the call.
"""

import json
from time import perf_counter

from opentelemetry import trace
from opentelemetry.metrics import get_meter
from opentelemetry.trace import Status, StatusCode

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.telemetry import semconv
from trunkline.telemetry.instruments import Instruments
from trunkline.workers.tools.call_registry import ActiveCall, CallHandler
from trunkline_bus import start_span


def with_tracing(work: CallHandler, *, capture: bool) -> CallHandler:
    """Return the handler within a span. ``capture`` puts arguments and result into the span, with secrets
    redacted."""
    tracer = trace.get_tracer("trunkline.tools")
    instruments = Instruments(get_meter("trunkline.tools"))
    secrets = Redactor()

    async def with_span(run: ActiveCall) -> ToolOutcome | None:
        with start_span(
            tracer, f"{semconv.EXECUTE_TOOL} {run.call.name}", attributes=_call_attributes(run)
        ) as span:
            started_at = perf_counter()
            try:
                outcome = await work(run)
            except BaseException:
                span.set_attributes(_execution_attributes(run))
                raise
            if outcome is None or outcome.is_open:
                span.update_name(f"{_pause(outcome)} {run.call.name}")
                return outcome
            span.set_attributes(_execution_attributes(run))
            _set_outcome(span, outcome)
            instruments.add(semconv.TOOL_DURATION, perf_counter() - started_at, _measured(outcome))
            if capture and span.is_recording():
                span.set_attribute(
                    semconv.GEN_AI_TOOL_ARGUMENTS, secrets.redact(json.dumps(run.call.arguments))
                )
                span.set_attribute(semconv.GEN_AI_TOOL_RESULT, secrets.redact(outcome.output))
            return outcome

    return with_span


def _pause(outcome: ToolOutcome | None) -> str:
    """Return what the call does instead of ending."""
    if outcome is None:
        return semconv.HAND_BACK
    return semconv.AWAIT_AGENT if outcome.status == "agent" else semconv.REQUEST_APPROVAL


def _call_attributes(run: ActiveCall) -> dict[str, str]:
    return {
        semconv.GEN_AI_CONVERSATION_ID: run.call.conversation,
        semconv.TURN: run.call.turn,
        semconv.TOOL: run.call.name,
        semconv.CALL: run.call.call,
    }


def _execution_attributes(run: ActiveCall) -> dict[str, str]:
    """Return the attributes by which a collector recognises the span as the call itself."""
    return {
        semconv.GEN_AI_OPERATION: semconv.EXECUTE_TOOL,
        semconv.GEN_AI_TOOL_NAME: run.call.name,
        semconv.GEN_AI_TOOL_CALL_ID: run.call.call,
        semconv.GEN_AI_TOOL_TYPE: "function",
    }


def _measured(outcome: ToolOutcome) -> dict[str, str]:
    """Return the metric's attributes. The tool's name is not among them, because MCP servers may have any
    number of tools."""
    return {
        semconv.GEN_AI_OPERATION: semconv.EXECUTE_TOOL,
        semconv.EFFECT: outcome.effect or "",
        semconv.ERROR_TYPE: outcome.kind or "",
    }


def _set_outcome(span: trace.Span, outcome: ToolOutcome) -> None:
    if (
        outcome.kind == "not_found" and outcome.effect is None
    ):  # no tool has this name: the model invented it, possibly with ids
        span.update_name(semconv.EXECUTE_TOOL)
    span.set_attribute(semconv.TOOL_STATUS, outcome.status)
    span.set_attribute(semconv.REPEATED, outcome.repeated)
    if outcome.kind is not None:
        span.set_attribute(semconv.ERROR_TYPE, outcome.kind)
        span.set_status(Status(StatusCode.ERROR))
