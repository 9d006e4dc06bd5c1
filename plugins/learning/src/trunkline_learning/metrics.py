"""A model's success figures: one small file for each model, written together with the lessons of a turn."""

from collections.abc import Sequence
from datetime import date

import msgspec

from trunkline_learning.verdicts import Verdict

DAYS = 90


class DayMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one day's turns."""

    total: int = 0
    successful: int = 0
    failed: int = 0


class ModelMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` are turns that were learned from; a turn that nobody has judged is neither successful nor failed, and
    ``success_rate`` is that among the judged ones."""

    total: int = 0
    successful: int = 0
    failed: int = 0
    strategies_extracted: int = 0
    success_rate: float = 0.0
    failure_types: dict[str, int] = {}
    daily_stats: dict[str, DayMetrics] = {}


def count_turn(metrics: ModelMetrics, day: date, *, strategies: int, failures: Sequence[str]) -> ModelMetrics:
    """Count a turn."""
    types = dict(metrics.failure_types)
    for kind in failures:
        types[kind] = types.get(kind, 0) + 1
    return msgspec.structs.replace(
        metrics,
        total=metrics.total + 1,
        strategies_extracted=metrics.strategies_extracted + strategies,
        failure_types=types,
        daily_stats=_day(metrics.daily_stats, day, total=1),
    )


def count_verdict(
    metrics: ModelMetrics, day: date, verdict: Verdict, *, instead_of: Verdict = "unknown"
) -> ModelMetrics:
    """A turn of that day was decided about. ``instead_of`` is what was counted of it before."""
    good = int(verdict == "success") - int(instead_of == "success")
    bad = int(verdict == "failure") - int(instead_of == "failure")
    successful, failed = max(0, metrics.successful + good), max(0, metrics.failed + bad)
    return msgspec.structs.replace(
        metrics,
        successful=successful,
        failed=failed,
        success_rate=round(successful / max(1, successful + failed), 4),
        daily_stats=_day(metrics.daily_stats, day, successful=good, failed=bad),
    )


def _day(
    days: dict[str, DayMetrics], day: date, *, total: int = 0, successful: int = 0, failed: int = 0
) -> dict[str, DayMetrics]:
    old = days.get(day.isoformat(), DayMetrics())
    good, bad = max(0, old.successful + successful), max(0, old.failed + failed)
    new = DayMetrics(total=old.total + total, successful=good, failed=bad)
    return dict(sorted({**days, day.isoformat(): new}.items())[-DAYS:])
