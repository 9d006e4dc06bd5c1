"""Derives measurements from journal records. Pure. Measurements never contain the content of a turn.

The gateway counts the records of all monitors for Prometheus. Each monitor counts the records that it writes for OTLP.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    ToolFinished,
    TurnFinished,
    TurnParked,
    TurnPreempted,
    TurnRecord,
    TurnResumed,
    TurnStarted,
)
from trunkline.telemetry import semconv
from trunkline.telemetry.semconv import MetricSpec

MAX_MODELS = 100
"""The largest number of models with values of their own. Clients may name models, and arbitrary names must not fill a
monitoring system."""

MAX_TURNS = 10_000
OTHER, UNKNOWN = "other", "unknown"

Attributes = dict[str, str]


class MetricSink(Protocol):
    """A receiver of measurements. An empty attribute counts as absent."""

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Add ``value`` to the counter, or record it in the histogram."""
        ...


@dataclass(slots=True)
class _Running:
    """The state of a turn that has not ended."""

    model: tuple[str, str] = (UNKNOWN, UNKNOWN)
    began: datetime | None = None
    requested: datetime | None = None


class TurnMetrics:
    """Takes journal records in order and adds the measurements to ``sink``."""

    def __init__(self, sink: MetricSink) -> None:
        self._sink = sink
        self._turns: OrderedDict[str, _Running] = OrderedDict()
        self._models: set[tuple[str, str]] = set()

    def record(self, record: TurnRecord, time: datetime) -> None:
        """Count a record that was written at ``time``."""
        turn = self._turns.setdefault(record.turn, _Running())
        for entry in record.entries:
            self._count(turn, entry, time)
        if any(isinstance(entry, TurnFinished) for entry in record.entries):
            del self._turns[record.turn]
        while len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)

    def record_unreadable(self) -> None:
        """Count a record that cannot be read."""
        self._add(semconv.UNREADABLE_RECORDS)

    def _count(self, turn: _Running, entry: JournalEntry, time: datetime) -> None:
        match entry:
            case TurnStarted():
                turn.model, turn.began = self._model(entry.model), time
                self._add(semconv.TURNS_STARTED)
            case TurnResumed():
                self._add(semconv.TURNS_RESUMED)
            case ModelCallPlanned():
                turn.requested = time
            case ModelCallFinished(commanded=True):
                turn.requested = None
            case ModelCallFinished():
                self._answered(turn, entry, time)
            case ModelCallFailed():
                self._took(turn, time, error=entry.code.value)
            case ToolFinished(outcome=outcome):
                effect = outcome.effect or UNKNOWN
                self._add(semconv.TOOL_CALLS, effect=effect, status=outcome.status)
            case ApprovalAsked():
                self._add(semconv.APPROVALS_ASKED)
            case ApprovalRecorded():
                self._add(semconv.APPROVALS_DECIDED, allowed=str(entry.allow).lower())
            case TurnParked():
                self._add(semconv.TURNS_PARKED)
            case TurnPreempted():
                turn.requested = None  # the model call is repeated
                self._add(semconv.TURNS_PREEMPTED)
            case TurnFinished():
                self._ended(turn, entry, time)

    def _answered(self, turn: _Running, entry: ModelCallFinished, time: datetime) -> None:
        self._took(turn, time, error="")
        if entry.first_chunk:
            self._sink.add(semconv.FIRST_CHUNK, entry.first_chunk, _labels(turn))
        for kind, tokens in (("input", entry.usage.input_tokens), ("output", entry.usage.output_tokens)):
            if tokens:
                self._sink.add(
                    semconv.TOKEN_USAGE, tokens, {**_labels(turn), semconv.GEN_AI_TOKEN_TYPE: kind}
                )

    def _took(self, turn: _Running, time: datetime, *, error: str) -> None:
        if turn.requested is not None:
            seconds = _seconds(turn.requested, time)
            self._sink.add(semconv.OPERATION_DURATION, seconds, {**_labels(turn), semconv.ERROR_TYPE: error})
        turn.requested = None

    def _ended(self, turn: _Running, entry: TurnFinished, time: datetime) -> None:
        error = entry.code.value if entry.code else ""
        self._sink.add(semconv.TURNS_FINISHED, 1, {semconv.REASON: entry.reason, semconv.ERROR_TYPE: error})
        if turn.began is not None:
            self._sink.add(semconv.TURN_DURATION, _seconds(turn.began, time), {})

    def _add(self, measure: MetricSpec, **attributes: str) -> None:
        self._sink.add(measure, 1, attributes)

    def _model(self, label: str) -> tuple[str, str]:
        """Return adapter and model of an ``adapter/model``. Beyond MAX_MODELS, all further models are ``other``."""
        provider, _, model = label.partition("/")
        found = (provider or UNKNOWN, model or UNKNOWN)
        if found not in self._models and len(self._models) >= MAX_MODELS:
            return OTHER, OTHER
        self._models.add(found)
        return found


def _labels(turn: _Running) -> Attributes:
    provider, model = turn.model
    return {
        semconv.GEN_AI_OPERATION: semconv.CHAT,
        semconv.GEN_AI_PROVIDER: provider,
        semconv.GEN_AI_REQUEST_MODEL: model,
    }


def _seconds(begin: datetime, end: datetime) -> float:
    return max(0.0, (end - begin).total_seconds())
