"""Slots for running turns: which waiting turn gets a free one, and which running turn must give up its own.

The lanes order the turns that wait (ADR 100). This module knows turns only by their slots.
"""

from bisect import insort
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal

import anyio

from trunkline.contracts.turns.lanes import LANES, Lane
from trunkline.contracts.workers.messages import LaneLoad

StartedCheck = Callable[[], Awaitable[bool]]
"""Reports whether a turn had already started."""

MAX_PREEMPTIONS = 3
"""A turn that was preempted so often is not preempted again."""

LANES_WITH_QUEUE: tuple[Lane, ...] = ("interactive", "background")
"""The lanes whose turns wait. Turns of the lane ``system`` do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """The limits of a monitor's slots.

    ``slots`` is the number of slots, of which background turns take at most ``background``. A background turn that has
    waited for ``longest_wait`` seconds, or was preempted ``max_preemptions`` times, waits like an interactive turn and
    is not preempted.
    """

    slots: int
    background: int
    longest_wait: float
    max_preemptions: int = MAX_PREEMPTIONS


class TurnSlot:
    """The slot of one turn, or its place among the turns that wait for one. Only ``TurnSlots`` changes it."""

    def __init__(self, slots: "TurnSlots", has_started: StartedCheck) -> None:
        self._slots = slots
        self._on_yield: Callable[[], None] | None = None
        self.has_started = has_started
        self.lane: Lane = "background"
        self.is_control = False
        """True for a turn that a person cancels or decides about. Such a turn does not wait. If no slot is free, it
        must yield as soon as the person's item is recorded."""
        self.preemptions = 0
        """How often the turn was preempted."""
        self.started = False
        self.arrival = 0
        self.since = 0.0
        """The time since which the turn waits."""
        self.state: Literal["out", "waiting", "counted", "extra"] = "out"
        """``counted`` turns occupy one of the slots, ``extra`` turns run in addition."""
        self.exempt = False
        """True for a turn that is not preempted, because it had waited too long."""
        self.must_yield = False
        """True when the turn must stop at its next safe point."""
        self.granted = anyio.Event()

    async def take(self, waited: float = 0.0) -> None:
        """Wait for a slot. ``waited`` is the number of seconds for which the turn has waited before."""
        await self._slots.take(self, waited)

    def release(self) -> None:
        """Free the slot, unless the turn has freed it already."""
        self._slots.release(self)

    async def wait_without(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Free the slot while ``wait`` runs, then wait for a slot again."""
        self.release()
        await wait()
        await self.take()

    def change(self, lane: Lane, is_control: bool) -> None:
        """Set the turn's lane, also while it waits or runs, and whether it has a control item."""
        self._slots.change(self, lane, is_control)

    def note_preemptions(self, number: int) -> None:
        """Note how often the turn was preempted."""
        self.preemptions = number

    def watch(self, on_yield: Callable[[], None]) -> None:
        """Call ``on_yield`` once when the turn must yield, now or later."""
        self._on_yield = on_yield
        if self.must_yield:
            on_yield()

    def demand_yield(self) -> None:
        """Make the turn stop at its next safe point."""
        if not self.must_yield:
            self.must_yield = True
            if self._on_yield is not None:
                self._on_yield()

    def reset(self) -> None:
        """Forget the grant."""
        self.state, self.must_yield, self.exempt, self._on_yield = "out", False, False, None
        self.granted = anyio.Event()


class TurnSlots:
    """The slots of one monitor and the turns that wait for them.

    A free slot goes to the waiting turn of the highest lane. Within a lane the turns come first that had already
    started, because their users have part of an answer, then the others in order of arrival. Turns of the lane
    ``system`` and turns with a control item do not wait: they run in addition to the slots.
    """

    def __init__(self, rules: SlotRules, now: Callable[[], float] = anyio.current_time) -> None:
        self._rules = rules
        self._now = now
        self._arrivals = count()
        self._counted: dict[TurnSlot, None] = {}
        """The turns that occupy a slot, in the order in which they got it."""
        self._extra: dict[TurnSlot, None] = {}
        """The turns that run in addition to the slots."""
        self._queues: dict[tuple[Lane, bool], list[TurnSlot]] = {
            (lane, started): [] for lane in LANES_WITH_QUEUE for started in (True, False)
        }
        """The waiting turns by lane and by whether they had started, each in order of arrival."""

    def slot(self, has_started: StartedCheck) -> TurnSlot:
        """Return a slot that is not taken yet. ``has_started`` reports whether the turn had started; it is called only
        when no slot is free."""
        return TurnSlot(self, has_started)

    def running(self, lane: Lane) -> int:
        """Return the number of turns of this lane that run."""
        return sum(slot.lane == lane for slot in (*self._counted, *self._extra))

    def waiting(self, lane: Lane) -> int:
        """Return the number of turns of this lane that wait for a slot."""
        return sum(len(queue) for (name, _), queue in self._queues.items() if name == lane)

    def load(self) -> tuple[LaneLoad, ...]:
        """Return the turns that run and wait, by lane; lanes without turns are left out."""
        loads = (
            LaneLoad(lane=lane, running=self.running(lane), waiting=self.waiting(lane)) for lane in LANES
        )
        return tuple(load for load in loads if load.running or load.waiting)

    async def take(self, slot: TurnSlot, waited: float) -> None:
        """Wait until the slot is granted."""
        slot.arrival, slot.since = next(self._arrivals), self._now() - waited
        if not self._has_room(slot.lane) and not _passes(slot):
            slot.started = await slot.has_started()
        self._wait(slot)
        try:
            await slot.granted.wait()
        except anyio.get_cancelled_exc_class():
            self.release(slot)
            raise

    def release(self, slot: TurnSlot) -> None:
        """End the turn's run, or its waiting."""
        self._leave(slot)
        slot.reset()
        self._grant()

    def change(self, slot: TurnSlot, lane: Lane, is_control: bool) -> None:
        """Move a turn to another lane."""
        if slot.state == "waiting":
            self._leave(slot)
            slot.lane, slot.is_control = lane, is_control
            self._wait(slot)
        else:
            slot.lane, slot.is_control = lane, is_control
            self._grant()

    def _wait(self, slot: TurnSlot) -> None:
        if _passes(slot) and not (slot.is_control and self._has_room(slot.lane)):
            slot.state = "extra"
            self._extra[slot] = None
            slot.must_yield = slot.lane != "system"
            slot.granted.set()
            return
        slot.state = "waiting"
        insort(self._queues[slot.lane, slot.started], slot, key=lambda one: one.arrival)
        self._grant()

    def _leave(self, slot: TurnSlot) -> None:
        if slot.state == "waiting":
            self._queues[slot.lane, slot.started].remove(slot)
        self._counted.pop(slot, None)
        self._extra.pop(slot, None)

    def _grant(self) -> None:
        """Grant the free slots, then make as many turns yield as interactive turns wait."""
        while (slot := self._next()) is not None:
            self._queues[slot.lane, slot.started].remove(slot)
            slot.exempt = slot.lane == "background" and self._is_urgent(slot)
            slot.state = "counted"
            self._counted[slot] = None
            slot.granted.set()
        self._preempt()

    def _next(self) -> TurnSlot | None:
        """Return the waiting turn that gets a slot now, or None."""
        interactive = self._heads("interactive") if self._has_room("interactive") else []
        background = self._heads("background") if self._has_room("background") else []
        urgent = [slot for slot in background if self._is_urgent(slot)]
        first = min(
            (*interactive[:1], *urgent), key=lambda slot: (not slot.started, slot.arrival), default=None
        )
        return first or next(iter(background), None)

    def _heads(self, lane: Lane) -> list[TurnSlot]:
        """Return the first of the started turns and the first of the others, as far as there are any."""
        return [queue[0] for started in (True, False) if (queue := self._queues[lane, started])]

    def _has_room(self, lane: Lane) -> bool:
        """Report whether a turn of this lane may take a slot."""
        rules = self._rules
        if len(self._counted) >= rules.slots:
            return False
        return lane != "background" or sum(slot.lane == lane for slot in self._counted) < rules.background

    def _is_urgent(self, slot: TurnSlot) -> bool:
        """Report whether a background turn has waited, or was preempted, as often or long as allowed."""
        waited = self._now() - slot.since
        return waited >= self._rules.longest_wait or slot.preemptions >= self._rules.max_preemptions

    def _preempt(self) -> None:
        """Make background turns yield, the least often preempted and the youngest first, until enough do."""
        missing = self.waiting("interactive") - sum(slot.must_yield for slot in self._counted)
        if missing <= 0:
            return
        running = [slot for slot in reversed(self._counted) if self._can_be_preempted(slot)]
        for slot in sorted(running, key=lambda one: one.preemptions)[:missing]:
            slot.demand_yield()

    def _can_be_preempted(self, slot: TurnSlot) -> bool:
        if slot.lane != "background" or slot.exempt or slot.must_yield:
            return False
        return slot.preemptions < self._rules.max_preemptions


def _passes(slot: TurnSlot) -> bool:
    """Report whether the turn does not wait for a slot."""
    return slot.is_control or slot.lane == "system"
