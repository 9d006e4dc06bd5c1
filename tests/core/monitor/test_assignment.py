"""The intended owner of each partition."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trunkline.workers.monitor.assignment import owners, standbys

MONITORS = st.sets(
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), min_size=1, max_size=12
)
PARTITIONS = st.integers(1, 64)


@given(MONITORS, PARTITIONS)
def test_partition_counts_of_monitors_differ_by_one_at_most(monitors: set[str], partitions: int) -> None:
    """Every partition has an owner, and no monitor has two more than another."""
    shared = owners(monitors, partitions)
    load = Counter(dict.fromkeys(monitors, 0)) + Counter(shared.values())
    assert set(shared) == set(range(partitions))
    counts = [load[monitor] for monitor in monitors]
    assert max(counts) - min(counts) <= 1


@given(MONITORS, PARTITIONS)
def test_all_monitors_compute_the_same_assignment(monitors: set[str], partitions: int) -> None:
    """The order in which the others were seen does not matter."""
    assert owners(sorted(monitors), partitions) == owners(sorted(monitors, reverse=True), partitions)


@given(MONITORS, PARTITIONS)
def test_the_standby_becomes_owner_when_the_owner_leaves(monitors: set[str], partitions: int) -> None:
    """A killed monitor's partitions thus move once; a single monitor has no standby."""
    owner, standby = owners(monitors, partitions), standbys(monitors, partitions)
    if len(monitors) == 1:
        assert standby == {}
        return
    for partition in range(partitions):
        assert standby[partition] == owners(monitors - {owner[partition]}, partitions)[partition]


def test_a_joining_monitor_moves_little_more_than_its_share() -> None:
    """Over many groups of monitors, at most two partitions more than those that it gets change hands on average."""
    for count in range(1, 8):
        moved = [_moved([f"{run}-{one}" for one in range(count + 1)]) for run in range(100)]
        assert sum(moved) / len(moved) <= 8 / (count + 1) + 2


def _moved(monitors: list[str]) -> int:
    before, after = owners(monitors[:-1], 8), owners(monitors, 8)
    return sum(before[partition] != after[partition] for partition in range(8))


def test_without_live_monitors_no_partition_is_assigned() -> None:
    """No monitors, no owners."""
    assert owners((), 8) == {} == standbys((), 8)
