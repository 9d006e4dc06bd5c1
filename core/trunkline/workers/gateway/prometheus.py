"""Metrics in Prometheus' text format. Knows metrics and numbers, and nothing of turns."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trunkline.telemetry.semconv import METRICS, MetricSpec
from trunkline.telemetry.turn_metrics import Attributes

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Distribution:
    """The bucket counts of a histogram and the sum of its values."""

    counts: list[int]
    sum: float = 0

    def add(self, value: float, bounds: Sequence[float]) -> None:
        self.counts[bisect_left(bounds, value)] += 1
        self.sum += value


@dataclass(slots=True)
class Exposition:
    """All metrics measured so far. A gauge has its last value."""

    _numbers: dict[MetricSpec, dict[Labels, float]] = field(default_factory=dict)
    _distributions: dict[MetricSpec, dict[Labels, _Distribution]] = field(default_factory=dict)

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Add ``value`` to a counter or histogram, or set a gauge to it."""
        labels = tuple((key.replace(".", "_"), text) for key, text in attributes.items())
        if measure.kind == "histogram":
            empty = _Distribution([0] * (len(measure.bounds) + 1))
            self._distributions.setdefault(measure, {}).setdefault(labels, empty).add(value, measure.bounds)
            return
        numbers = self._numbers.setdefault(measure, {})
        numbers[labels] = value if measure.kind == "gauge" else numbers.get(labels, 0) + value

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return "\n".join(line for measure in METRICS for line in self._lines(measure)) + "\n"

    def _lines(self, measure: MetricSpec) -> Iterable[str]:
        numbers = self._numbers.get(measure, {(): 0.0} if measure.plain else {})
        distributions = self._distributions.get(measure, {})
        if numbers or distributions:
            yield f"# HELP {measure.prometheus} {measure.doc}"
            yield f"# TYPE {measure.prometheus} {measure.kind}"
        for labels, value in sorted(numbers.items()):
            yield _line(measure.prometheus, labels, value)
        for labels, distribution in sorted(distributions.items()):
            yield from _buckets(measure, labels, distribution)


def _buckets(measure: MetricSpec, labels: Labels, distribution: _Distribution) -> Iterable[str]:
    below = 0
    for bound, count in zip((*map(_number, measure.bounds), "+Inf"), distribution.counts, strict=True):
        below += count
        yield _line(f"{measure.prometheus}_bucket", (*labels, ("le", bound)), below)
    yield _line(f"{measure.prometheus}_sum", labels, distribution.sum)
    yield _line(f"{measure.prometheus}_count", labels, below)


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.10g}"
