"""Which turn runs next when not all can run."""

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from trunkline.workers.monitor.slots import TurnSlots

pytestmark = pytest.mark.anyio


class Race:
    """Turns that want a slot; ``ran`` is the order in which they got one."""

    def __init__(self, limit: int) -> None:
        self.slots = TurnSlots(limit)
        self.ran: list[str] = []
        self.together = self.most = self.asked = 0

    async def turn(self, name: str, begun: bool = False) -> None:
        """Run for a moment, once there is a slot."""
        async with self.slots.acquire(lambda: self._was_started(begun)):
            self.ran.append(name)
            self.together += 1
            self.most = max(self.most, self.together)
            try:
                await checkpoint()
            finally:
                self.together -= 1

    async def _was_started(self, begun: bool) -> bool:
        self.asked += 1
        await checkpoint()
        return begun


async def test_started_turns_come_first_then_the_longest_waiting() -> None:
    """An interrupted turn overtakes waiting ones that were not started, and no other."""
    race = Race(1)
    async with anyio.create_task_group() as tasks, race.slots.acquire(not_begun):
        for name in ("a", "b", "c"):
            tasks.start_soon(race.turn, name)
        await wait_all_tasks_blocked()
        for name in ("cut-1", "cut-2"):
            tasks.start_soon(race.turn, name, True)
        await wait_all_tasks_blocked()
    assert race.ran == ["cut-1", "cut-2", "a", "b", "c"]


async def test_at_most_the_limit_run_and_each_turn_gets_a_slot() -> None:
    """This holds for any number of turns, and for any cancel of a waiting or running one."""
    race = Race(3)
    for _ in range(5):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(race.turn, f"gone-{number}", number % 2 == 0)
                for _ in range(3):
                    await checkpoint()
                scope.cancel()
    race.ran.clear()
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(race.turn, str(number), number % 2 == 0)
    assert sorted(race.ran, key=int) == [str(number) for number in range(20)]
    assert race.most == 3


async def test_a_free_slot_costs_no_question() -> None:
    """The start of a turn is looked up only when it matters."""
    race = Race(1)
    await race.turn("a")
    assert (race.ran, race.asked) == (["a"], 0)


async def not_begun() -> bool:
    """Not begun."""
    await checkpoint()
    return False
