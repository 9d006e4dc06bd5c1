"""A few dozen faults at random while people talk: the short form of ``python -m benchmarks.chaos``."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from trunkline.testing.scripted_provider import provider_process

from .chaos_run import LEAST, Order, Outcome, run
from .disks import why_not
from .evidence import evidence
from .faults import Fault, plan, victims
from .platform_processes import Setting

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

DRAWN = random.SystemRandom().randrange(1_000_000)


def test_the_same_seed_gives_the_same_faults() -> None:
    """A run can be repeated with its seed."""
    weights = victims(("nats",))

    def drawn(seed: int) -> list[Fault]:
        return list(plan(seed, 20, 1.0, weights, 0.5))

    assert drawn(7) == drawn(7) != drawn(8)


def test_one_kind_of_fault_strikes_only_whom_it_can() -> None:
    """A run of SIGKILLs alone kills workers and servers, and leaves the observers' connection as it is."""
    weights = victims(("nats-1", "nats-2"))
    kills = list(plan(7, 50, 1.0, weights, 0.5, "kill"))
    assert {fault.kind(victim) for fault in kills for victim in fault.preferred} == {"kill"}
    assert {victim for fault in kills for victim in fault.preferred} == set(weights) - {"client"}


async def no_promise_is_broken(order: Order) -> Outcome:
    """Run it; a violation fails the test, with the seed, the evidence and the place of the logs."""
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-chaos-{order.seed}-"))
    print(f"seed {order.seed}")  # noqa: T201 - pytest shows it with a failure
    with provider_process() as provider:
        outcome = await run(order, home, provider, lambda progress: None)
    assert not outcome.broken, f"seed {order.seed}, logs in {home}\n{evidence(outcome)}"
    assert outcome.struck >= LEAST
    assert outcome.turns >= 3
    shutil.rmtree(home, ignore_errors=True)
    return outcome


async def test_no_guarantee_is_broken_by_kills() -> None:
    """Every accepted message is answered once and in order, no effect happens twice, every client's stream joins."""
    await no_promise_is_broken(Order(DRAWN, faults=20, seconds=14.0, people=4, pause=0.6, pile=0.7))


@pytest.mark.timeout(600)
async def test_no_guarantee_is_broken_by_kills_under_background_work() -> None:
    """Agents work for people's turns, schedules are due every few seconds and workflows begin: every task, due time and
    step happens once and is reported."""
    order = Order(
        DRAWN, faults=6, seconds=15.0, people=3, pause=1.5, pile=0.4, settle=240.0, only="kill", mixed=True
    )
    background = (await no_promise_is_broken(order)).background
    assert background is not None and background.dues["turns"] and background.runs["completed"]


async def test_no_guarantee_is_broken_when_cluster_servers_die() -> None:
    """The same on three servers that each have everything, whichever leads."""
    order = Order(DRAWN, faults=8, seconds=9.0, people=4, pause=0.6, pile=0.5, setting=Setting(servers=3))
    await no_promise_is_broken(order)


async def test_no_guarantee_is_broken_by_an_update() -> None:
    """Every process, the server too, is drained and started again, one after the other."""
    outcome = await no_promise_is_broken(
        Order(DRAWN, faults=8, seconds=14.0, people=4, pause=0.2, rolling=True)
    )
    assert {kind for _, kind in outcome.faults} == {"drain"}


@pytest.mark.skipif(bool(why_not()), reason=why_not())
async def test_no_guarantee_is_broken_by_a_full_disk() -> None:
    """Bus and memory run out of room in turn: accepted messages are answered once there is room again."""
    setting = Setting(disks=True)
    await no_promise_is_broken(Order(DRAWN, faults=2, seconds=8.0, pause=0.5, people=3, setting=setting))
