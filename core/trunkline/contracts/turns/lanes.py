"""The lanes of turns: three priorities in which turns wait for a slot of a monitor."""

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, UnsetType

Lane = Literal["system", "interactive", "background"]
"""The priority of a turn, highest first. A person waits for an ``interactive`` turn, and nobody for a ``background``
turn. ``system`` is for turns of Trunkline itself that must not wait behind people."""

LANES: tuple[Lane, ...] = ("system", "interactive", "background")
"""The lanes, highest first."""

Trigger = Literal["message", "webhook", "schedule", "agent"]
"""The cause of a turn: ``message`` if a person sent it, ``agent`` if another turn gave it as a task."""


def lane_of(trigger: Trigger, lane: Lane | UnsetType) -> Lane:
    """Return the lane of a turn with these fields of ``TurnRequested``. If ``lane`` is unset, a person's message is
    interactive, and everything else is in the background."""
    if not isinstance(lane, UnsetType):
        return lane
    return "interactive" if trigger == "message" else "background"


def recorded_lane(lane: Lane) -> Lane | UnsetType:
    """Return the lane as feed items and facts have it: unset for ``interactive``, so that they keep their bytes."""
    return UNSET if lane == "interactive" else lane


def highest_lane(lanes: Iterable[Lane]) -> Lane:
    """Return the highest of these lanes; ``background`` if there are none."""
    found = sorted(lanes, key=LANES.index)
    return found[0] if found else "background"
