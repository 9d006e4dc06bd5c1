"""The tables of a run of ``python -m benchmarks.chaos``. No measuring in here."""

from collections.abc import Iterable

from tests.chaos.driver import Outcome
from tests.chaos.faults import Kind

from benchmarks.figures import percentile, table

KINDS: tuple[Kind, ...] = ("kill", "stop", "drain", "cut")


def report(outcome: Outcome) -> str:
    """All tables."""
    return "\n\n".join([_faults(outcome), _totals(outcome)])


def _faults(outcome: Outcome) -> str:
    """Faults and gaps, by victim."""
    victims = sorted({victim for victim, _ in outcome.faults})
    rows: list[list[object]] = []
    for victim in victims:
        counts = [outcome.faults.get((victim, kind), 0) for kind in KINDS]
        gaps = [gap for (name, _), found in outcome.gaps.items() if name == victim for gap in found]
        rows.append([victim, *counts, sum(counts), len(gaps), *_spread(gaps)])
    counts = [sum(n for (_, k), n in outcome.faults.items() if k == kind) for kind in KINDS]
    every = [gap for found in outcome.gaps.values() for gap in found]
    rows.append(["all", *counts, outcome.struck, len(every), *_spread(every)])
    head = ["victim", *KINDS, "faults", "streams hit", "gap p50 s", "gap p95 s", "gap max s"]
    return table(head, rows) + "\n\n" + _by_kind(outcome)


def _by_kind(outcome: Outcome) -> str:
    rows = []
    for kind in KINDS:
        gaps = [gap for (_, k), found in outcome.gaps.items() if k == kind for gap in found]
        rows.append([kind, len(gaps), *_spread(gaps)])
    return table(["kind", "streams hit", "gap p50 s", "gap p95 s", "gap max s"], rows)


def _spread(gaps: list[float]) -> list[str]:
    if not gaps:
        return ["-", "-", "-"]
    return [f"{value:.2f}" for value in (percentile(gaps, 0.5), percentile(gaps, 0.95), max(gaps))]


def _totals(outcome: Outcome) -> str:
    account, faults = outcome.account, max(1, outcome.struck)
    count = {sort: sum(one.sort == sort for one in outcome.broken) for sort in ("lost", "doubled", "broken")}
    rows: Iterable[tuple[str, object]] = (
        ("seed", outcome.order.seed),
        ("seconds", f"{outcome.seconds:.0f}"),
        ("turns accepted", outcome.turns),
        ("ended", _counts(account.reasons)),
        ("steered messages", outcome.steered),
        ("clients that watched", outcome.clients),
        ("lost", count["lost"]),
        ("doubled", count["doubled"]),
        ("other promises broken", count["broken"]),
        ("effects", account.effects),
        ("tool outcomes", _counts(account.outcomes)),
        ("takeovers", account.takeovers),
        ("model calls", account.asked),
        ("asked again per fault", f"{account.again / faults:.2f}"),
        ("starts that failed", outcome.failed_starts),
        ("HTTP streams ended by a passing error", len(outcome.passing)),
    )
    return table(["", ""], rows)


def _counts(counter: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "-"
