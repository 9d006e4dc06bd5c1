"""The span around a tool call, and its measurement, by the GenAI conventions. Uses the OpenTelemetry API alone."""

import json
from time import perf_counter

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from trunkline.messages.tools import ToolOutcome
from trunkline.telemetry import names
from trunkline.telemetry.instruments import Instruments
from trunkline.tools.calls import Run, Work
from trunkline_bus import span_of


def traced(work: Work, *, capture: bool) -> Work:
    """The same work with a span around it. ``capture`` puts arguments and result into the span."""
    tracer = trace.get_tracer("trunkline.tools")
    instruments = Instruments("trunkline.tools")

    async def with_span(run: Run) -> ToolOutcome | None:
        with span_of(tracer, f"{names.EXECUTE_TOOL} {run.call.name}") as span:
            span.set_attributes(_known(run))
            began = perf_counter()
            outcome = await work(run)
            if outcome is None:
                return None
            _tell(span, outcome)
            instruments.add(names.TOOL_DURATION, perf_counter() - began, _measured(outcome))
            if capture and span.is_recording():
                span.set_attribute(names.GEN_AI_TOOL_ARGUMENTS, json.dumps(run.call.arguments))
                span.set_attribute(names.GEN_AI_TOOL_RESULT, outcome.output)
            return outcome

    return with_span


def _known(run: Run) -> dict[str, str]:
    return {
        names.GEN_AI_OPERATION: names.EXECUTE_TOOL,
        names.GEN_AI_TOOL_NAME: run.call.name,
        names.GEN_AI_TOOL_CALL_ID: run.call.call,
        names.GEN_AI_TOOL_TYPE: "function",
        names.GEN_AI_CONVERSATION_ID: run.call.conversation,
        names.TURN: run.call.turn,
    }


def _measured(outcome: ToolOutcome) -> dict[str, str]:
    """No tool's name: an MCP server may bring any number of them."""
    return {
        names.GEN_AI_OPERATION: names.EXECUTE_TOOL,
        names.EFFECT: outcome.effect or "",
        names.ERROR_TYPE: f"tool_{outcome.status}" if outcome.status in ("error", "unknown") else "",
    }


def _tell(span: trace.Span, outcome: ToolOutcome) -> None:
    span.set_attribute(names.TOOL_STATUS, outcome.status)
    span.set_attribute(names.REPEATED, outcome.repeated)
    if outcome.status in ("error", "unknown"):
        span.set_attribute(names.ERROR_TYPE, f"tool_{outcome.status}")
        span.set_status(Status(StatusCode.ERROR))
