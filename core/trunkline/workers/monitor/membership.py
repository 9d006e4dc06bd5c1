"""The live monitors, as this monitor sees them, and the partitions that this monitor should pull.

A monitor counts as live while its heartbeat changes. All times are from this process's clock; clocks of other hosts are
not used.
"""

from collections.abc import Collection
from dataclasses import dataclass

from anyio import current_time

from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.workers.monitor.assignment import owners, standbys
from trunkline_bus import Bus, KeyValueEntry

SILENT_SECONDS = 2.5
"""Seconds without a new heartbeat after which a monitor counts as dead. Monitors send one each second. Pins of a dead
monitor expire earlier."""

STEADY_SECONDS = 1.5
"""Seconds that a monitor must have been live before others give up partitions to it."""


@dataclass(slots=True)
class _Member:
    heartbeat: WorkerHeartbeat
    revision: int
    since: float
    last: float


class Membership:
    """The live monitors and the assignment of partitions. Call ``refresh()`` to read the heartbeats; before
    the first refresh no other monitor is known."""

    def __init__(self, bus: Bus, me: str) -> None:
        self._bucket = bus.kv(WORKER_BUCKET)
        self._me = me
        self._members: dict[str, _Member] = {}

    async def refresh(self) -> None:
        """Read the heartbeats. Raises BusError; the former state stays."""
        entries = [entry for entry in await self._bucket.entries() if self._is_another(entry)]
        for entry in entries:
            self._record(entry)
        present = {entry.key for entry in entries}
        self._members = {key: member for key, member in self._members.items() if key in present}

    async def is_finishing(self, monitor: str, conversation: str) -> bool:
        """Report whether ``monitor`` is another, live monitor that is finishing its running turn of the conversation
        and will start no other one.

        Reads the heartbeat from the server, because the last refresh may be a second old. Raises BusError.
        """
        entry = None if monitor == self._me else await self._bucket.get(monitor)
        if entry is None or not self._is_another(entry):
            return False
        member = self._record(entry)
        return _is_alive(member) and (member.heartbeat.draining or conversation in member.heartbeat.finishing)

    def _is_another(self, entry: KeyValueEntry[WorkerHeartbeat]) -> bool:
        return entry.value is not None and entry.value.kind == "monitor" and entry.key != self._me

    def _record(self, entry: KeyValueEntry[WorkerHeartbeat]) -> _Member:
        assert entry.value is not None
        now = current_time()
        member = self._members.setdefault(entry.key, _Member(entry.value, entry.revision, now, now))
        if member.revision != entry.revision:
            since = member.since if _is_alive(member) else now
            member.heartbeat, member.revision, member.since, member.last = (
                entry.value,
                entry.revision,
                since,
                now,
            )
        return member

    @property
    def monitors(self) -> frozenset[str]:
        """All monitors that take partitions, including this one."""
        others = (
            key
            for key, member in self._members.items()
            if _is_alive(member) and not member.heartbeat.draining
        )
        return frozenset({self._me, *others})

    def unconfirmed_partitions(self, partitions: int) -> set[int]:
        """Return the partitions that this monitor would inherit and whose owner has no pin yet.

        The caller must check whether the owner pulls them: a crashed monitor counts as live for SILENT_SECONDS.
        """
        monitors = self.monitors
        owner = owners(monitors, partitions)
        heirs = standbys(monitors, partitions)
        return {one for one, heir in heirs.items() if heir == self._me and not self._has_pin(owner[one], one)}

    def partitions_to_pull(
        self, claimed: Collection[int], unpulled: Collection[int], partitions: int
    ) -> set[int]:
        """Return the partitions that this monitor should pull.

        It pulls:

        * the partitions that are assigned to it,
        * the partitions that it has now (``claimed``), until their new owner has been live for STEADY_SECONDS,
        * as the standby, partitions whose owner has a pin, so that the server pins them here at once after a crash,
        * the ``unpulled`` partitions.
        """
        monitors = self.monitors
        owner = owners(monitors, partitions)
        standby = standbys(monitors, partitions)
        return {
            partition
            for partition in range(partitions)
            if owner[partition] == self._me
            or (partition in claimed and not self._is_steady(owner[partition]))
            or (standby.get(partition) == self._me and self._has_pin(owner[partition], partition))
            or partition in unpulled
        }

    def _is_steady(self, monitor: str) -> bool:
        return current_time() - self._members[monitor].since >= STEADY_SECONDS

    def _has_pin(self, monitor: str, partition: int) -> bool:
        """Report whether the monitor has a pin of the partition. A standby must not pull before that, because the
        server pins a free partition to the first monitor that pulls."""
        return partition in self._members[monitor].heartbeat.pins


def _is_alive(member: _Member) -> bool:
    return current_time() - member.last < SILENT_SECONDS
