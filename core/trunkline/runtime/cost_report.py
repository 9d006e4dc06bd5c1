"""Sums of the cost ledger. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from trunkline._util.local_time import to_local_time
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.costs.report_messages import CostSum, Grouping


@dataclass(frozen=True, slots=True)
class CostReport:
    """The sums of a time, by one property, and their total. ``unpriced`` names the models without a price."""

    by: Grouping
    since: datetime
    rows: tuple[CostSum, ...]
    total: CostSum
    unpriced: tuple[str, ...] = field(default=())


def entries_since(
    entries: Iterable[CostEntry], since: datetime, block: str | None = None, conversation: str | None = None
) -> list[CostEntry]:
    """Return the entries of a time, each request once: of several entries with one id the last one holds."""
    last = {entry.id: entry for entry in entries}
    return [
        one
        for one in last.values()
        if one.at >= since and block in (None, one.block) and conversation in (None, one.conversation)
    ]


def cost_report(entries: Iterable[CostEntry], by: Grouping, since: datetime) -> CostReport:
    """Return the sums. Days are in order of time and include those without a request; other groups begin with the most
    expensive one.
    """
    entries = list(entries)
    groups: dict[str, list[CostEntry]] = {}
    for entry in entries:
        groups.setdefault(_KEYS[by](entry), []).append(entry)
    if by == "day":
        groups = {day: groups.get(day, []) for day in _days(groups)}
    rows = [_sum(key, group) for key, group in groups.items()]
    if by != "day":
        rows.sort(key=lambda row: (-row.cost, -row.usage.input_tokens, row.key))
    unpriced = sorted({model_of(entry) for entry in entries if _is_unpriced(entry)})
    return CostReport(by, since, tuple(rows), _sum("total", entries), tuple(unpriced))


def model_of(entry: CostEntry) -> str:
    """Return ``adapter/model`` of the model that answered, or that was to answer."""
    model = entry.model or entry.requested
    return f"{entry.adapter}/{model}" if model else entry.adapter


def _day(entry: CostEntry) -> str:
    return to_local_time(entry.at).date().isoformat()


_KEYS: dict[Grouping, Callable[[CostEntry], str]] = {
    "block": lambda entry: entry.block or "(none)",
    "day": _day,
    "model": model_of,
    "purpose": lambda entry: entry.purpose,
    "conversation": lambda entry: entry.conversation or "(none)",
}


def _days(groups: Iterable[str]) -> list[str]:
    """Return all days from the first to the last one."""
    found = sorted(map(date.fromisoformat, groups))
    count = (found[-1] - found[0]).days + 1 if found else 0
    return [(found[0] + timedelta(days=number)).isoformat() for number in range(count)]


def _is_unpriced(entry: CostEntry) -> bool:
    return entry.cost is None and entry.status == "finished"


def _sum(key: str, entries: list[CostEntry]) -> CostSum:
    return CostSum(
        key=key,
        requests=len(entries),
        usage=sum((entry.usage for entry in entries), Usage()),
        cost=sum(entry.cost or 0 for entry in entries),
        unpriced=sum(map(_is_unpriced, entries)),
        estimated=sum(entry.estimated for entry in entries),
        failed=sum(entry.status != "finished" for entry in entries),
    )
