"""Some hundred calls struck at their boundaries: the short form of ``python -m benchmarks.effects``."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from .effect_run import play
from .fault_plan import AT_WORKER, AT_WORKER_FLYING, Kind

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

DRAWN = random.SystemRandom().randrange(1_000_000)

SHORT = (
    Kind("kill tools", AT_WORKER, 4),
    Kind("kill tools", AT_WORKER_FLYING, 1),
    Kind("kill server", AT_WORKER, 1),
    Kind("cancel", AT_WORKER, 1),
    Kind("kill tools", ("effect after",), 1, tool="careless"),
)


async def test_no_effect_happens_twice_and_every_doubt_is_reported() -> None:
    """At every boundary of a write, the workers that are running the calls are killed, or the server is, or the turn
    is cancelled. No effect happens twice, an outcome that cannot be known is reported as unknown, and all readers
    receive the same outcome. A tool wrongly declared read-only is run again, and is detected: its effect is counted
    twice."""
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-effects-{DRAWN}-"))
    verdict = await play(home, DRAWN, SHORT, 200, (8, 6))
    liars = {case.mark for case in verdict.cases if case.tool == "careless"}
    broken = [finding for finding in verdict.findings if finding.mark not in liars]
    shown = "\n".join(finding.what for finding in broken[:5])
    assert not broken, f"seed {DRAWN}, logs in {home}\n{shown}"
    assert verdict.injected >= 200
    assert {case.boundary for case in verdict.cases if case.struck} >= {*AT_WORKER, *AT_WORKER_FLYING}
    in_doubt = [case for case in verdict.cases if case.in_doubt]
    assert in_doubt and all(case.doubt for case in in_doubt)
    assert "doubled" in {finding.sort for finding in verdict.findings if finding.mark in liars}
    shutil.rmtree(home, ignore_errors=True)
