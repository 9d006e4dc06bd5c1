"""Which turn runs next when not all can run, and which turn must yield."""

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.workers.messages import LaneLoad
from trunkline.workers.monitor.slots import SlotRules, TurnSlot, TurnSlots

pytestmark = pytest.mark.anyio


class Race:
    """Turns that want a slot; ``ran`` is the order in which they got one. ``time`` is the time of the slots."""

    def __init__(self, limit: int, background: int | None = None, longest_wait: float = 1e9) -> None:
        self.time = 0.0
        rules = SlotRules(slots=limit, background=background or limit, longest_wait=longest_wait)
        self.slots = TurnSlots(rules, now=lambda: self.time)
        self.ran: list[str] = []
        self.together = self.most = self.asked = 0

    async def turn(self, name: str, begun: bool = False, lane: Lane = "interactive") -> None:
        """Run for a moment, once there is a slot."""
        slot = self.slot(lane, begun)
        try:
            await slot.take()
            self.ran.append(name)
            self.together += 1
            self.most = max(self.most, self.together)
            try:
                await checkpoint()
            finally:
                self.together -= 1
        finally:
            slot.release()

    def slot(self, lane: Lane, begun: bool = False, *, is_control: bool = False) -> TurnSlot:
        """A slot that is not taken yet."""
        slot = self.slots.slot(lambda: self._was_started(begun))
        slot.change(lane, is_control)
        return slot

    async def _was_started(self, begun: bool) -> bool:
        self.asked += 1
        await checkpoint()
        return begun


async def test_started_turns_come_first_then_the_longest_waiting() -> None:
    """An interrupted turn overtakes waiting ones of its lane that were not started, and no other."""
    race = Race(1)
    first = race.slot("interactive")
    await first.take()
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b", "c"):
            tasks.start_soon(race.turn, name)
        await wait_all_tasks_blocked()
        for name in ("cut-1", "cut-2"):
            tasks.start_soon(race.turn, name, True)
        tasks.start_soon(race.turn, "cut-background", True, "background")
        await wait_all_tasks_blocked()
        first.release()
    assert race.ran == ["cut-1", "cut-2", "a", "b", "c", "cut-background"]


async def test_CC_T1_a_slot_goes_to_the_highest_lane_then_in_order() -> None:
    """Background, interactive and system turns that wait run in the order system, interactive, background. Within a
    lane the order of arrival counts (CC-F3, CC-D5)."""
    race = Race(1)
    first = race.slot("interactive")
    await first.take()
    async with anyio.create_task_group() as tasks:
        for lane in ("background", "interactive", "system"):
            for number in range(3):
                tasks.start_soon(race.turn, f"{lane}-{number}", False, lane)
                await wait_all_tasks_blocked()
        first.release()
    order = [f"{lane}-{number}" for lane in ("system", "interactive", "background") for number in range(3)]
    assert race.ran == order


async def test_at_most_the_limit_run_and_each_turn_gets_a_slot() -> None:
    """This holds for any number of turns, and for any cancel of a waiting or running one."""
    race = Race(3, background=2)
    lanes: tuple[Lane, ...] = ("interactive", "background")
    for _ in range(5):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(race.turn, f"gone-{number}", number % 3 == 0, lanes[number % 2])
                for _ in range(3):
                    await checkpoint()
                scope.cancel()
    race.ran.clear()
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(race.turn, str(number), number % 3 == 0, lanes[number % 2])
    assert sorted(race.ran, key=int) == [str(number) for number in range(20)]
    assert race.most == 3
    assert (
        [race.slots.running(lane) for lane in lanes] == [race.slots.waiting(lane) for lane in lanes] == [0, 0]
    )


async def test_a_free_slot_costs_no_question() -> None:
    """The start of a turn is looked up only when it matters."""
    race = Race(1)
    await race.turn("a")
    assert (race.ran, race.asked) == (["a"], 0)


async def test_an_interactive_turn_preempts_the_youngest_background_turn() -> None:
    """As many background turns must yield as interactive turns wait, and no interactive turn ever must."""
    race = Race(3)
    person, old, young = (race.slot(lane) for lane in ("interactive", "background", "background"))
    yielded: list[str] = []
    for name, slot in (("person", person), ("old", old), ("young", young)):
        await slot.take()
        slot.watch(lambda name=name: yielded.append(name))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(race.turn, "a")
        await wait_all_tasks_blocked()
        assert yielded == ["young"]
        for name in ("b", "c"):
            tasks.start_soon(race.turn, name)
            await wait_all_tasks_blocked()
        assert yielded == ["young", "old"]
        young.release()
    assert race.ran == ["a", "b", "c"]


async def test_a_turn_that_a_person_waits_for_is_not_preempted() -> None:
    """A message that arrives for a background turn, or behind it, makes it interactive."""
    race = Race(1)
    slot = race.slot("background")
    await slot.take()
    slot.change("interactive", False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(race.turn, "a")
        await wait_all_tasks_blocked()
        assert not slot.must_yield
        slot.release()


async def test_a_background_turn_that_waited_too_long_takes_its_turn() -> None:
    """It gets a slot before the interactive turns that arrived later, and is not preempted."""
    race = Race(1, longest_wait=60)
    first, aged = race.slot("interactive"), race.slot("background")
    await first.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aged.take)
        await wait_all_tasks_blocked()
        race.time = 30.0
        tasks.start_soon(race.turn, "early")
        await wait_all_tasks_blocked()
        first.release()
        await wait_all_tasks_blocked()
        assert race.ran == ["early"] and aged.granted.is_set()
        aged.release()
        await first.take()
        tasks.start_soon(aged.take)
        await wait_all_tasks_blocked()
        race.time = 91.0
        tasks.start_soon(race.turn, "late")
        await wait_all_tasks_blocked()
        first.release()
        await wait_all_tasks_blocked()
        assert aged.granted.is_set() and not aged.must_yield and race.ran == ["early"]
        aged.release()
    assert race.ran == ["early", "late"]


async def test_a_turn_that_was_preempted_often_waits_like_people() -> None:
    """After three preemptions it is not preempted again."""
    race = Race(1)
    slot, first = race.slot("background"), race.slot("interactive")
    slot.note_preemptions(3)
    await first.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slot.take)
        await wait_all_tasks_blocked()
        tasks.start_soon(race.turn, "later")
        await wait_all_tasks_blocked()
        first.release()
        await wait_all_tasks_blocked()
        assert slot.granted.is_set() and not slot.must_yield and race.ran == []
        slot.release()


async def test_background_turns_leave_slots_to_people() -> None:
    """Background turns take at most their number of slots; an interactive turn then finds a free one."""
    race = Race(3, background=2)
    slots = [race.slot("background") for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        for slot in slots:
            tasks.start_soon(slot.take)
        await wait_all_tasks_blocked()
        assert race.slots.load() == (LaneLoad(lane="background", running=2, waiting=1),)
        await race.turn("person")
        assert not any(slot.must_yield for slot in slots)
        slots[0].release()
        await wait_all_tasks_blocked()
        assert slots[2].granted.is_set()
        for slot in slots[1:]:
            slot.release()


async def test_system_turns_and_controls_do_not_wait_and_take_no_slot() -> None:
    """A control item makes even a waiting turn run at once; it must yield when the item is recorded."""
    race = Race(1)
    first, waiting = race.slot("interactive"), race.slot("background")
    await first.take()
    await race.turn("system", lane="system")
    control = race.slot("background", is_control=True)
    await control.take()
    assert control.must_yield
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting.take)
        await wait_all_tasks_blocked()
        assert not waiting.granted.is_set()
        waiting.change("background", True)
        assert waiting.granted.is_set() and waiting.must_yield
    for slot in (waiting, control):
        slot.release()
    assert race.slots.running("interactive") == 1


@given(
    st.lists(st.tuples(st.sampled_from(("system", "interactive", "background")), st.booleans()), max_size=30),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_slots_are_neither_lost_nor_exceeded(
    turns: list[tuple[Lane, bool]], limit: int, background: int
) -> None:
    """For any arrivals: the limits hold at each moment, everybody who waits runs, and in the end all slots are free."""

    async def run() -> None:
        race = Race(limit, background=min(background, limit))

        async def one(lane: Lane, begun: bool) -> None:
            slot = race.slot(lane, begun)
            try:
                await slot.take()
                assert race.slots.running("interactive") + race.slots.running("background") <= limit
                assert race.slots.running("background") <= min(background, limit)
                await checkpoint()
            finally:
                slot.release()

        async with anyio.create_task_group() as tasks:
            for lane, begun in turns:
                tasks.start_soon(one, lane, begun)
        assert all(race.slots.running(lane) == race.slots.waiting(lane) == 0 for lane, _ in turns)

    anyio.run(run)
