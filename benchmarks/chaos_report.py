"""The tables of a run of ``python -m benchmarks.chaos``. No measuring in here."""

from collections import Counter

from benchmarks.figures import percentile, table
from tests.chaos.background_audit import BackgroundAccount
from tests.chaos.chaos_run import Outcome
from tests.chaos.faults import Kind
from tests.chaos.stream_gaps import Gap, longest

GAPS = ["streams", "gap p50 / p95 / max s", "occurred alone", "gap p50 / p95 / max s"]
"""Of all streams that were in the middle at a fault, and of those where everybody was up and it was the only fault."""

KINDS: tuple[Kind, ...] = ("kill", "stop", "drain", "cut", "full")

AIM_GAP, AIM_AGAIN = 2.0, 1.0
"""Seconds at the 95th percentile, and model calls asked again for each fault."""


def report(outcome: Outcome) -> str:
    """All tables."""
    background = [_background(outcome.background)] if outcome.background is not None else []
    tables = [
        _faults(outcome),
        _kinds(outcome),
        _worst(outcome),
        *background,
        _totals(outcome),
        _aims(outcome),
    ]
    return "\n\n".join(tables)


def figures(outcome: Outcome) -> dict[str, object]:
    """The figures as JSON has them: the totals, and those of agents, schedules and workflows of a mixed run."""
    found: dict[str, object] = {
        **dict(_totals_of(outcome)),
        "faults": {f"{victim} {kind}": count for (victim, kind), count in sorted(outcome.faults.items())},
        "broken": [f"{one.sort}: {one.where}: {one.what}" for one in outcome.broken],
    }
    if (account := outcome.background) is not None:
        found["background"] = {name: dict(counts) for name, counts in _background_counts(account)}
    return found


def _background(account: BackgroundAccount) -> str:
    """Agents, schedules and workflows."""
    rows = [[name, sum(counts.values()), _counts(counts)] for name, counts in _background_counts(account)]
    return table(["beside people's messages", "number", "of these"], rows)


def _background_counts(account: BackgroundAccount) -> list[tuple[str, Counter[str]]]:
    return [
        ("tasks of agents", account.tasks),
        ("due times of schedules", account.dues),
        ("workflow runs", account.runs),
        ("steps of workflows", account.steps),
    ]


def _faults(outcome: Outcome) -> str:
    """Faults and gaps, by victim."""
    kinds = [kind for kind in KINDS if any(k == kind for _, k in outcome.faults)]
    rows = []
    for victim in sorted({victim for victim, _ in outcome.faults}):
        counts = [outcome.faults.get((victim, kind), 0) for kind in kinds]
        gaps = [gap for gap in outcome.gaps if gap.struck.victim == victim]
        rows.append([victim, *counts, sum(counts), *_spreads(gaps)])
    counts = [sum(n for (_, k), n in outcome.faults.items() if k == kind) for kind in kinds]
    rows.append(["all", *counts, outcome.struck, *_spreads(outcome.gaps)])
    return table(["process", *kinds, "faults", *GAPS], rows)


def _kinds(outcome: Outcome) -> str:
    """Gaps by kind of fault."""
    rows = [
        [kind, *_spreads(found)]
        for kind in KINDS
        if (found := [gap for gap in outcome.gaps if gap.struck.kind == kind])
    ]
    return table(["kind", *GAPS], rows)


def _worst(outcome: Outcome) -> str:
    """Of each fault the stream that it held up longest: no stream that it did not touch makes this look better."""
    worst = longest(outcome.gaps)
    sorts = {
        "all": worst,
        "occurred alone": [gap for gap in worst if gap.alone],
        "occurred with others": [gap for gap in worst if not gap.alone],
    }
    rows = [[name, len(found), _spread([gap.seconds for gap in found])] for name, found in sorts.items()]
    return table(["longest gap of each fault", "faults", "gap p50 / p95 / max s"], rows)


def _aims(outcome: Outcome) -> str:
    account, every = outcome.account, [gap.seconds for gap in outcome.gaps]
    again = account.again / max(1, outcome.struck)
    bad = sum(one.sort in ("lost", "doubled") for one in outcome.broken)
    p95 = percentile(every, 0.95) if every else 0.0
    rows = [
        ("lost or doubled", 0, bad, _met(bad == 0)),
        ("gap p95, s", AIM_GAP, f"{p95:.2f}", _met(p95 <= AIM_GAP)),
        ("model calls repeated per fault", AIM_AGAIN, f"{again:.2f}", _met(again <= AIM_AGAIN)),
    ]
    return table(["aim", "at most", "here", ""], rows)


def _met(met: bool) -> str:
    return "met" if met else "missed"


def _spreads(gaps: list[Gap]) -> list[object]:
    every = [gap.seconds for gap in gaps]
    alone = [gap.seconds for gap in gaps if gap.alone]
    return [len(every), _spread(every), len(alone), _spread(alone)]


def _spread(gaps: list[float]) -> str:
    if not gaps:
        return "-"
    return " / ".join(f"{value:.2f}" for value in (percentile(gaps, 0.5), percentile(gaps, 0.95), max(gaps)))


def _totals(outcome: Outcome) -> str:
    return table(["", ""], _totals_of(outcome))


def _totals_of(outcome: Outcome) -> tuple[tuple[str, object], ...]:
    account, faults = outcome.account, max(1, outcome.struck)
    count = {sort: sum(one.sort == sort for one in outcome.broken) for sort in ("lost", "doubled", "broken")}
    return (
        ("seed", outcome.order.seed),
        ("seconds", f"{outcome.seconds:.0f}"),
        ("turns accepted", outcome.turns),
        ("ended", _counts(account.reasons)),
        ("steered messages", outcome.steered),
        ("clients that watched", outcome.clients),
        ("shown after p50 / p95 / max s, occurred alone", _spreads(outcome.shown)[-1]),
        ("lost", count["lost"]),
        ("doubled", count["doubled"]),
        ("other promises broken", count["broken"]),
        ("effects", account.effects),
        ("tool outcomes", _counts(account.outcomes)),
        ("decisions of people", account.decisions),
        ("takeovers", account.takeovers),
        ("model calls", account.asked),
        ("model calls checked", account.judged),
        ("model calls repeated per fault", f"{account.again / faults:.2f}"),
        ("requests that the vendor got, cost estimated", f"{account.requests}, {account.estimated}"),
        ("starts that failed", outcome.failed_starts),
        ("HTTP streams ended by a passing error", len(outcome.passing)),
    )


def _counts(counter: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "-"
