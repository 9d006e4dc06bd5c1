"""The names of all spans, attributes and metrics.

GenAI and messaging names follow the OpenTelemetry semantic conventions (gen-ai spans and metrics, messaging spans).
Trunkline's additional names begin with ``trunkline.``. The Prometheus endpoint and the OTLP exporter use the same
metrics.
"""

from dataclasses import dataclass
from typing import Final, Literal

# Spans
INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EMBEDDINGS: Final = "embeddings"
TRANSCRIPTION: Final = "transcription"
SPEECH: Final = "speech"
EXECUTE_TOOL: Final = "execute_tool"
REQUEST_APPROVAL: Final = "request_approval"
"""A tool call that ended with a question to a person. The call has not run; ``execute_tool`` follows an approval."""
AWAIT_AGENT: Final = "await_agent"
"""The span of a call that starts the task of an agent and ends until the result arrives."""
HAND_BACK: Final = "hand_back"
"""A tool call that a worker returned unrun or unfinished. Another worker produces the outcome."""
WAIT_FOR_MEMORY: Final = "wait for memory"
"""A tool call that is not decided yet, because memory, which has the owner's rules, is unavailable."""
STORE: Final = "store conversation"
ACCEPT: Final = "accept message"

# GenAI attributes
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
GEN_AI_SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_RESULT: Final = "gen_ai.tool.call.result"

# Messaging attributes
MESSAGING_SYSTEM: Final = "messaging.system"
MESSAGING_CLIENT: Final = "messaging.client.id"
MESSAGING_DESTINATION: Final = "messaging.destination.name"
MESSAGING_TEMPLATE: Final = "messaging.destination.template"
MESSAGING_OPERATION: Final = "messaging.operation.name"

# General
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE: Final = "service.instance.id"
SERVICE_VERSION: Final = "service.version"

# Trunkline
TURN: Final = "trunkline.turn.id"
EPOCH: Final = "trunkline.turn.epoch"
LANE: Final = "trunkline.turn.lane"
PREEMPTIONS: Final = "trunkline.turn.preemptions"
STEP: Final = "trunkline.turn.step"
CHANNEL: Final = "trunkline.channel"
FIRST_TOKEN: Final = "trunkline.first_token"
MODEL_RETRY: Final = "trunkline.model.retry"
MODEL_FALLBACK: Final = "trunkline.model.fallback"
"""The events that middleware repeated a model call, and that it called another model. Their attributes are the model,
and for a retry the fault."""
MODEL_LABEL: Final = "trunkline.model"
MODEL_FAULT: Final = "trunkline.fault"
CONTEXT_LEFT_OUT: Final = "trunkline.context.left_out"
"""The event that a turn began without a context source. Its attributes name the source and the reason."""
CONTEXT_SOURCE: Final = "trunkline.context.source"
UNFINISHED: Final = "trunkline.span.unfinished"
"""True on a span that a killed worker left open. Another worker exported the span, and its true end is not known."""
REPEATED: Final = "trunkline.tool.repeated"
TOOL_STATUS: Final = "trunkline.tool.status"
TOOL: Final = "trunkline.tool.name"
CALL: Final = "trunkline.tool.call.id"
ROUTE: Final = "trunkline.route"
ROUTE_REASON: Final = "trunkline.route.reason"
"""The category that a turn router chose for a turn, and why."""
PURPOSE: Final = "trunkline.model.purpose"
MODEL: Final = "trunkline.model.label"
"""The answering model, as preferences and journals write it: ``adapter/model``, or the adapter while it is unknown."""
COST: Final = "trunkline.model.cost"
"""Millionths of a US dollar."""

# Attributes of metrics
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"
REASON: Final = "reason"
STATUS: Final = "status"
EFFECT: Final = "effect"
ALLOWED: Final = "allowed"
KIND: Final = "kind"
DRAINING: Final = "draining"
STREAM: Final = "stream"

_PROMETHEUS_UNITS: Final = {"s": "_seconds", "By": "_bytes"}


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric. ``unit`` is a UCUM unit; ``bounds`` are the bucket bounds of a histogram in that unit.

    ``plain`` is true for a metric without attributes; it is reported as 0 before the first measurement.
    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    doc: str
    bounds: tuple[float, ...] = ()
    plain: bool = False

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, by OpenTelemetry's rules."""
        unit = _PROMETHEUS_UNITS.get(self.unit, "")
        return self.name.replace(".", "_") + unit + ("_total" if self.kind == "counter" else "")


_TOKENS: Final = tuple(4**power for power in range(14))
_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
_FIRST_SECONDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
"""The bucket bounds that the conventions advise; these are for the time to the first token."""

_TURN_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0)

# Metrics of turns
TOKEN_USAGE: Final = MetricSpec(
    "gen_ai.client.token.usage", "histogram", "{token}", "Tokens of a model call, as its provider counts them.",
    _TOKENS,
)  # fmt: skip
OPERATION_DURATION: Final = MetricSpec(
    "gen_ai.client.operation.duration", "histogram", "s", "Duration of a model call.", _SECONDS
)
FIRST_CHUNK: Final = MetricSpec(
    "gen_ai.client.operation.time_to_first_chunk", "histogram", "s",
    "Time from the request to a model until the first part of its answer.", _FIRST_SECONDS,
)  # fmt: skip
TURNS_STARTED: Final = MetricSpec(
    "trunkline.turns.started", "counter", "{turn}", "Turns that started.", plain=True
)
TURNS_PARKED: Final = MetricSpec(
    "trunkline.turns.parked",
    "counter",
    "{turn}",
    "Number of times that a turn was parked to wait for a decision.",
    plain=True,
)
TURNS_RESUMED: Final = MetricSpec(
    "trunkline.turns.resumed", "counter", "{turn}", "Number of times that a parked turn resumed.", plain=True
)
TURNS_PREEMPTED: Final = MetricSpec(
    "trunkline.turns.preempted",
    "counter",
    "{turn}",
    "Number of times that a turn gave up its slot for another turn.",
    plain=True,
)
TURNS_FINISHED: Final = MetricSpec(
    "trunkline.turns.finished", "counter", "{turn}", "Turns that ended, by reason and error."
)
TURN_DURATION: Final = MetricSpec(
    "trunkline.turn.duration",
    "histogram",
    "s",
    "Duration of a turn from its start to its end, waiting included.",
    _TURN_SECONDS,
)
TOOL_CALLS: Final = MetricSpec(
    "trunkline.tool.calls", "counter", "{call}", "Tool calls that ended, by effect and outcome."
)
APPROVALS_ASKED: Final = MetricSpec(
    "trunkline.approvals.asked",
    "counter",
    "{approval}",
    "Tool calls that needed a decision of a person.",
    plain=True,
)
APPROVALS_DECIDED: Final = MetricSpec(
    "trunkline.approvals.decided", "counter", "{approval}", "Decisions of people about tool calls."
)
UNREADABLE_RECORDS: Final = MetricSpec(
    "trunkline.journal.unreadable",
    "counter",
    "{record}",
    "Journal records of a later version, which the turn metrics do not count.",
    plain=True,
)

# Metrics of a tools worker
TOOL_DURATION: Final = MetricSpec(
    "gen_ai.execute_tool.duration", "histogram", "s", "Duration of a tool call in its worker.", _SECONDS
)

# Metrics of the platform
WORKERS: Final = MetricSpec("trunkline.workers", "gauge", "{worker}", "Workers whose heartbeat is current.")
RESTARTS: Final = MetricSpec(
    "trunkline.worker.restarts", "gauge", "{restart}", "Restarts of the running workers after crashes."
)
INBOX_MESSAGES: Final = MetricSpec(
    "trunkline.inbox.messages",
    "gauge",
    "{message}",
    "Accepted messages whose turn has not ended.",
    plain=True,
)
INBOX_LAG: Final = MetricSpec(
    "trunkline.inbox.oldest",
    "gauge",
    "s",
    "Age of the oldest accepted message whose turn has not ended.",
    plain=True,
)
DEAD_LETTERS: Final = MetricSpec(
    "trunkline.dead_letters",
    "gauge",
    "{message}",
    "Messages that could not be decoded or handled.",
    plain=True,
)
STREAM_SIZE: Final = MetricSpec("trunkline.stream.size", "gauge", "By", "Size of a stream on the server.")

METRICS: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, MetricSpec))
"""All metrics."""
