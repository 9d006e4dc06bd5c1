"""The outcome checker finds violations: each guarantee, violated on purpose."""

from collections.abc import Mapping
from typing import Any

import pytest

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.workers.monitor.turn_messages import UNDECIDED, UNFINISHED
from trunkline.workers.tools.error_outcomes import VERIFY

from .fault_plan import AT_MONITOR_FLYING, AT_WORKER_FLYING, BOUNDARIES, KINDS, plan
from .outcome_checker import Case, judge

OK, ERROR, UNKNOWN = "moved it", "transfer was not run: it was not allowed.", f"Unknown. {VERIFY}"


def case(text: str, status: Any = "ok", effects: int = 1, **given: Any) -> Case:
    """A call with the same report for the model, the person and the ledger."""
    outcome = ToolOutcome(call="c", status=status, output=text)
    reported: Mapping[str, Any] = {
        "outcomes": [outcome], "stored": [text], "shown": [text], "ledger": outcome, **given
    }  # fmt: skip
    return Case(mark="0.0-0@effect after", fault="kill tools", struck=True, effects=effects, **reported)


GOOD = {
    "done": case(OK),
    "refused": case(ERROR, "error", 0),
    "unknown and had": case(UNKNOWN, "unknown", standing="started"),
    "unknown and not had": case(UNKNOWN, "unknown", 0, standing="started"),
    "cut": case(OK, outcomes=[], stored=[UNFINISHED], shown=[], cut=True),
    "never made": case(OK, effects=0, outcomes=[], stored=[], shown=[], ledger=None, cut=True, made=False),
    "never decided": case(OK, effects=0, outcomes=[], stored=[UNDECIDED], shown=[], cut=True),
}

BAD = {
    "twice": ("doubled", case(OK, effects=2)),
    "done and not": ("false", case(OK, effects=0)),
    "refused and had": ("false", case(ERROR, "error", 1)),
    "hidden in an error": ("unreported", case("It failed.", "error", 1)),
    "doubt not told": ("unreported", case(OK, standing="started")),
    "doubt told as an error": ("unreported", case(UNKNOWN, "error", 0, standing="started")),
    "unknown, but not what to do": ("unreported", case("Unknown.", "unknown", 0, standing="started")),
    "no outcome": ("lost", case(OK, outcomes=[])),
    "two outcomes": ("doubled", case(OK, outcomes=[ToolOutcome(call="c", status="ok", output=OK)] * 2)),
    "the model is not told": ("lost", case(OK, stored=[])),
    "the model is told twice": ("doubled", case(OK, stored=[OK, OK])),
    "the person is told something else": ("false", case(OK, shown=[UNKNOWN])),
    "the ledger says something else": (
        "false", case(OK, ledger=ToolOutcome(call="c", status="unknown", output=UNKNOWN)),
    ),
    "somebody else is told something else": (
        "false", case(OK, answers=[ToolOutcome(call="c", status="ok", output="moved that")]),
    ),
    "never made and had": ("unreported", case(OK, outcomes=[], stored=[], ledger=None, cut=True, made=False)),
    "never made, and nobody ended it": ("lost", case(OK, effects=0, stored=[], ledger=None, made=False)),
    "the turn does not end": ("lost", case(OK, ended=False)),
    "undecided and had": ("false", case(OK, outcomes=[], stored=[UNDECIDED], shown=[], cut=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_correct_run_passes(name: str) -> None:
    """A run with correct reports has no finding."""
    assert list(judge(GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_violations_are_found(name: str) -> None:
    """Each broken promise by its name."""
    sort, broken = BAD[name]
    assert sort in {finding.sort for finding in judge(broken)}


def test_the_waves_reach_every_boundary_and_repeat_for_a_seed() -> None:
    """No boundary is left out by all kinds, and a seed gives the same waves again."""
    assert {at for kind in KINDS for at in kind.boundaries} == set(BOUNDARIES)
    assert {*AT_WORKER_FLYING, *AT_MONITOR_FLYING} < set(BOUNDARIES)

    def drawn(seed: int) -> list[tuple[str, ...]]:
        waves = plan(seed, 2_000, 10, 4)
        return [next(waves).marks for _ in range(50)]

    assert drawn(7) == drawn(7) != drawn(8)
