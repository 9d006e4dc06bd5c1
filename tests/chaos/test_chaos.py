"""A few dozen faults at random while people talk: the short form of ``python -m benchmarks.chaos``."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from trunkline.testing.scripted_provider import provider_process

from .driver import Order, run
from .evidence import evidence
from .faults import plan

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

FIXED = 20_261
DRAWN = random.SystemRandom().randrange(1_000_000)


def test_a_seed_gives_the_same_faults() -> None:
    """What a seed showed can be looked for again."""
    assert list(plan(7, 20, 1.0)) == list(plan(7, 20, 1.0)) != list(plan(8, 20, 1.0))


@pytest.mark.parametrize("seed", [FIXED, DRAWN], ids=["fixed", "drawn"])
async def test_no_promise_is_broken_whoever_dies(seed: int) -> None:
    """Every accepted message is answered once and in order, no effect happens twice, every client's stream joins."""
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-chaos-{seed}-"))
    print(f"seed {seed}")  # noqa: T201 - pytest shows it with a failure
    with provider_process() as provider:
        order = Order(seed, faults=30, seconds=28.0, pause=0.9, settle=50.0)
        outcome = await run(order, home, provider, lambda progress: None)
    assert not outcome.broken, f"seed {seed}, logs in {home}\n{evidence(outcome)}"
    assert outcome.struck >= 5
    assert outcome.turns >= 5
    shutil.rmtree(home, ignore_errors=True)
