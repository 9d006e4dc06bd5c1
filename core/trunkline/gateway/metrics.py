"""Counts what journals say, in Prometheus' text form. Pure: records in, text out, and never a turn's content.

Names follow OpenTelemetry's conventions for GenAI as Prometheus spells them: ``gen_ai.client.token.usage`` reads
``gen_ai_client_token_usage``. Ours begin with ``trunkline_``.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trunkline.messages.turn import (
    Finished,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    Parked,
    Resumed,
    Started,
    ToolFinished,
    TurnRecord,
)
from trunkline.messages.workers import WorkerBeat

TOKEN_BUCKETS = tuple(4**power for power in range(14))
SECOND_BUCKETS = tuple(0.01 * 2**power for power in range(14))
"""Both as the conventions advise."""

TURN_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0)

MODELS = 100
"""How many models are told apart; who may name a model must not be able to fill a monitoring system with names."""

REMEMBERED = 10_000
OTHER, UNKNOWN = "other", "unknown"

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Counter:
    name: str
    help: str
    plain: bool = False
    """Whether it has no labels, and so is there from the beginning."""
    values: Counter[Labels] = field(default_factory=Counter)

    def add(self, **labels: str) -> None:
        self.values[tuple(labels.items())] += 1

    def lines(self) -> Iterable[str]:
        yield from _head(self.name, self.help, "counter")
        for labels, value in sorted(self.values.items()) or ([((), 0)] if self.plain else []):
            yield _line(self.name, labels, value)


@dataclass(slots=True)
class _Histogram:
    name: str
    help: str
    bounds: Sequence[float]
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def add(self, value: float, **labels: str) -> None:
        key = tuple(labels.items())
        counts = self.counts.setdefault(key, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[key] = self.sums.get(key, 0) + value

    def lines(self) -> Iterable[str]:
        yield from _head(self.name, self.help, "histogram")
        for labels, counts in sorted(self.counts.items()):
            below = 0
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), counts, strict=True):
                below += count
                yield _line(f"{self.name}_bucket", (*labels, ("le", bound)), below)
            yield _line(f"{self.name}_sum", labels, self.sums[labels])
            yield _line(f"{self.name}_count", labels, below)


@dataclass(slots=True)
class _Running:
    """What is known of a turn that has not ended."""

    model: tuple[str, str] = (UNKNOWN, UNKNOWN)
    began: datetime | None = None
    asked: datetime | None = None


class Meter:
    """Takes the journal's records in their order and tells what they amount to."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, _Running] = OrderedDict()
        self._models: set[tuple[str, str]] = set()
        self._tokens = _Histogram(
            "gen_ai_client_token_usage", "Tokens of a model call, as its provider counts them.", TOKEN_BUCKETS
        )
        self._durations = _Histogram(
            "gen_ai_client_operation_duration_seconds", "How long a model call took.", SECOND_BUCKETS
        )
        self._started = _Counter("trunkline_turns_started_total", "Turns that began.", plain=True)
        self._parked = _Counter(
            "trunkline_turns_parked_total", "Times that a turn came to wait for a decision.", plain=True
        )
        self._resumed = _Counter(
            "trunkline_turns_resumed_total", "Times that a turn was taken up again.", plain=True
        )
        self._finished = _Counter("trunkline_turns_finished_total", "Turns that ended, by reason and error.")
        self._lasted = _Histogram(
            "trunkline_turn_duration_seconds",
            "From a turn's begin to its end, waiting included.",
            TURN_BUCKETS,
        )
        self._tools = _Counter("trunkline_tool_calls_total", "Tool calls that ended, by outcome.")
        self._unreadable = _Counter(
            "trunkline_journal_unreadable_total", "Records of a later version, not counted.", plain=True
        )

    def take(self, record: TurnRecord, time: datetime) -> None:
        """Count a record that was written at ``time``."""
        turn = self._turns.setdefault(record.turn, _Running())
        for entry in record.entries:
            self._count(turn, entry, time)
        if any(isinstance(entry, Finished) for entry in record.entries):
            del self._turns[record.turn]
        while len(self._turns) > REMEMBERED:
            self._turns.popitem(last=False)

    def skip(self) -> None:
        """Count a record that cannot be read."""
        self._unreadable.add()

    def text(self, workers: Iterable[WorkerBeat]) -> str:
        """Everything, in Prometheus' text form."""
        measures = (
            self._tokens, self._durations, self._started, self._parked, self._resumed, self._finished,
            self._lasted, self._tools, self._unreadable,
        )  # fmt: skip
        lines = [line for measure in measures for line in measure.lines()]
        alive = Counter((("kind", beat.kind), ("draining", str(beat.draining).lower())) for beat in workers)
        lines += _head("trunkline_workers", "Workers that live.", "gauge")
        lines += [_line("trunkline_workers", labels, count) for labels, count in sorted(alive.items())]
        return "\n".join(lines) + "\n"

    def _count(self, turn: _Running, entry: JournalEntry, time: datetime) -> None:
        match entry:
            case Started():
                turn.model, turn.began = self._model(entry.model), time
                self._started.add()
            case Resumed():
                self._resumed.add()
            case ModelCallPlanned():
                turn.asked = time
            case ModelCallFinished():
                self._answered(turn, entry, time)
            case ModelCallFailed():
                self._took(turn, time, error=entry.code.value)
            case ToolFinished():
                self._tools.add(status=entry.outcome.status)
            case Parked():
                self._parked.add()
            case Finished():
                self._finished.add(reason=entry.reason, error_type=entry.code.value if entry.code else "")
                if turn.began is not None:
                    self._lasted.add(_seconds(turn.began, time))

    def _answered(self, turn: _Running, entry: ModelCallFinished, time: datetime) -> None:
        self._took(turn, time, error="")
        for kind, tokens in (("input", entry.usage.input_tokens), ("output", entry.usage.output_tokens)):
            if tokens:
                self._tokens.add(tokens, **self._labels(turn), gen_ai_token_type=kind)

    def _took(self, turn: _Running, time: datetime, *, error: str) -> None:
        if turn.asked is not None:
            self._durations.add(_seconds(turn.asked, time), **self._labels(turn), error_type=error)
        turn.asked = None

    def _labels(self, turn: _Running) -> dict[str, str]:
        provider, model = turn.model
        return {
            "gen_ai_operation_name": "chat",
            "gen_ai_provider_name": provider,
            "gen_ai_request_model": model,
        }

    def _model(self, label: str) -> tuple[str, str]:
        """Adapter and model of an ``adapter/model``; those above the limit are all one."""
        provider, _, model = label.partition("/")
        found = (provider or UNKNOWN, model or UNKNOWN)
        if found not in self._models and len(self._models) >= MODELS:
            return OTHER, OTHER
        self._models.add(found)
        return found


def _seconds(begin: datetime, end: datetime) -> float:
    return max(0.0, (end - begin).total_seconds())


def _head(name: str, help: str, kind: str) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
