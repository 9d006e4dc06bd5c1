"""The monitors that live, as one of them sees it, and which partitions are its own to pull.

Times are of this process's own clock, and who lives is told by who still writes: no other machine's clock is read.
"""

from collections.abc import Collection
from dataclasses import dataclass

from anyio import current_time

from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.workers.monitor.assignment import owners, standbys
from trunkline_bus import Bus, KeyValueEntry

SILENT_SECONDS = 2.5
"""After how long without a beat (one comes each second) a monitor counts as gone; its pins run out sooner."""

STEADY_SECONDS = 1.5
"""For how long a monitor must have been there before others give up partitions to it."""


@dataclass(slots=True)
class _Member:
    beat: WorkerHeartbeat
    revision: int
    since: float
    last: float


class Membership:
    """Who lives, and who should hold what. ``look()`` brings it up to date; before the first look nobody is known."""

    def __init__(self, bus: Bus, me: str) -> None:
        self._bucket = bus.kv(WORKER_BUCKET)
        self._me = me
        self._seen: dict[str, _Member] = {}

    async def refresh(self) -> None:
        """Read who lives. Raises BusError; what was seen before stays."""
        entries = [entry for entry in await self._bucket.entries() if self._is_another(entry)]
        for entry in entries:
            self._record(entry)
        present = {entry.key for entry in entries}
        self._seen = {key: seen for key, seen in self._seen.items() if key in present}

    async def is_finishing(self, monitor: str, conversation: str) -> bool:
        """Report whether another monitor lives and is about to end the turn that it runs there, and to begin no other.

        Asks the server: a look may be a second old. Raises BusError.
        """
        entry = None if monitor == self._me else await self._bucket.get(monitor)
        if entry is None or not self._is_another(entry):
            return False
        seen = self._record(entry)
        return _is_alive(seen) and (seen.beat.draining or conversation in seen.beat.finishing)

    def _is_another(self, entry: KeyValueEntry[WorkerHeartbeat]) -> bool:
        return entry.value is not None and entry.value.kind == "monitor" and entry.key != self._me

    def _record(self, entry: KeyValueEntry[WorkerHeartbeat]) -> _Member:
        assert entry.value is not None
        now = current_time()
        seen = self._seen.setdefault(entry.key, _Member(entry.value, entry.revision, now, now))
        if seen.revision != entry.revision:
            since = seen.since if _is_alive(seen) else now
            seen.beat, seen.revision, seen.since, seen.last = entry.value, entry.revision, since, now
        return seen

    @property
    def monitors(self) -> frozenset[str]:
        """All that take partitions, this one among them."""
        others = (key for key, seen in self._seen.items() if _is_alive(seen) and not seen.beat.draining)
        return frozenset({self._me, *others})

    def unconfirmed_partitions(self, partitions: int) -> set[int]:
        """What would be this monitor's without an owner that was given nothing of it yet. Whether that one pulls it has
        to be looked at: a dead one counts as living for a while."""
        monitors = self.monitors
        owner = owners(monitors, partitions)
        heirs = standbys(monitors, partitions)
        return {one for one, heir in heirs.items() if heir == self._me and not self._has_pin(owner[one], one)}

    def partitions_to_pull(
        self, held: Collection[int], unattended: Collection[int], partitions: int
    ) -> set[int]:
        """What this monitor should pull: its share, what it ``held`` until the owner is there, and as a standby what
        another holds, so that a dead owner's pin comes here at once, and what is ``unattended``: nobody pulls it."""
        monitors = self.monitors
        owner = owners(monitors, partitions)
        standby = standbys(monitors, partitions)
        return {
            partition
            for partition in range(partitions)
            if owner[partition] == self._me
            or (partition in held and not self._is_steady(owner[partition]))
            or (standby.get(partition) == self._me and self._has_pin(owner[partition], partition))
            or partition in unattended
        }

    def _is_steady(self, monitor: str) -> bool:
        return current_time() - self._seen[monitor].since >= STEADY_SECONDS

    def _has_pin(self, monitor: str, partition: int) -> bool:
        """Report whether the monitor was given something of the partition. Before that a standby would only be in its
        way: an unheld partition goes to whichever of those who pull it asked first.
        """
        return partition in self._seen[monitor].beat.pins


def _is_alive(seen: _Member) -> bool:
    return current_time() - seen.last < SILENT_SECONDS
