"""The assignment of partitions to monitors, as a function of the live monitors. No I/O.

Rendezvous hashing with a limit: every pair of monitor and partition has a score, and pairs are granted from
the highest score down until each monitor has its share. All monitors that see the same members compute the
same result without messages. A monitor that joins or leaves moves little more than its own share. Shares
differ by at most one.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b


def owners(monitors: Collection[str], partitions: int) -> Mapping[int, str]:
    """Return the monitor that should hold each partition; empty when there is no monitor."""
    if not monitors:
        return {}
    share, larger = divmod(partitions, len(monitors))
    load = dict.fromkeys(monitors, 0)
    granted: dict[int, str] = {}
    for _, partition, monitor in sorted(_scores(monitors, partitions), reverse=True):
        if partition in granted or load[monitor] > share or (load[monitor] == share and larger == 0):
            continue
        larger -= load[monitor] == share
        load[monitor] += 1
        granted[partition] = monitor
    return granted


def standbys(monitors: Collection[str], partitions: int) -> Mapping[int, str]:
    """Return the monitor that should take over each partition when its owner fails; empty without a second monitor."""
    owner = owners(monitors, partitions)
    heirs = {gone: owners([one for one in monitors if one != gone], partitions) for gone in monitors}
    return {partition: heirs[gone][partition] for partition, gone in owner.items() if heirs[gone]}


def _scores(monitors: Collection[str], partitions: int) -> list[tuple[bytes, int, str]]:
    return [
        (blake2b(f"{monitor}/{partition}".encode(), digest_size=8).digest(), partition, monitor)
        for monitor in monitors
        for partition in range(partitions)
    ]
