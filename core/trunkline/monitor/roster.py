"""The monitors that live, as one of them sees it, and which partitions are its own to pull.

Times are of this process's own clock, and who lives is told by who still writes: no other machine's clock is read.
"""

from collections.abc import Collection
from dataclasses import dataclass

from anyio import current_time

from trunkline.messages.workers import WorkerBeat
from trunkline.monitor.shares import owners, standbys
from trunkline.subjects import WORKER_BUCKET
from trunkline_bus import Bus, Entry

SILENT_SECONDS = 2.5
"""After how long without a beat (one comes each second) a monitor counts as gone; its pins run out sooner."""

STEADY_SECONDS = 1.5
"""For how long a monitor must have been there before others give up partitions to it."""


@dataclass(slots=True)
class _Seen:
    beat: WorkerBeat
    revision: int
    since: float
    last: float


class Roster:
    """Who lives, and who should hold what. ``look()`` brings it up to date; before the first look nobody is known."""

    def __init__(self, bus: Bus, me: str) -> None:
        self._bucket = bus.kv(WORKER_BUCKET)
        self._me = me
        self._seen: dict[str, _Seen] = {}

    async def look(self) -> None:
        """Read who lives. Raises BusError; what was seen before stays."""
        entries = [entry for entry in await self._bucket.entries() if self._is_another(entry)]
        now = current_time()
        for entry in entries:
            self._note(entry, now)
        present = {entry.key for entry in entries}
        self._seen = {
            key: seen
            for key, seen in self._seen.items()
            if key in present and now - seen.last < SILENT_SECONDS
        }

    def _is_another(self, entry: Entry[WorkerBeat]) -> bool:
        return entry.value is not None and entry.value.kind == "monitor" and entry.key != self._me

    def _note(self, entry: Entry[WorkerBeat], now: float) -> None:
        if entry.value is None:
            return
        seen = self._seen.setdefault(entry.key, _Seen(entry.value, entry.revision, now, now))
        if seen.revision != entry.revision:
            seen.beat, seen.revision, seen.last = entry.value, entry.revision, now

    @property
    def monitors(self) -> frozenset[str]:
        """All that take partitions, this one among them."""
        return frozenset({self._me, *(key for key, seen in self._seen.items() if not seen.beat.draining)})

    def wanted(self, held: Collection[int], partitions: int) -> set[int]:
        """What this monitor should pull: its share, what it ``held`` until the owner is there, and as a standby what
        another holds, so that a dead owner's pin comes here at once."""
        monitors = self.monitors
        owner = owners(monitors, partitions)
        standby = standbys(monitors, partitions)
        return {
            partition
            for partition in range(partitions)
            if owner[partition] == self._me
            or (partition in held and not self._steady(owner[partition]))
            or (standby.get(partition) == self._me and self._holds(owner[partition], partition))
        }

    def _steady(self, monitor: str) -> bool:
        return current_time() - self._seen[monitor].since >= STEADY_SECONDS

    def _holds(self, monitor: str, partition: int) -> bool:
        """Whether the monitor was given something of the partition. Before that a standby would only be in its way:
        an unheld partition goes to whichever of those who pull it asked first."""
        return partition in self._seen[monitor].beat.pins
