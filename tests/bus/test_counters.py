"""Numbers that many processes change."""

from typing import Any

import anyio
import pytest

from trunkline_bus import (
    Bus,
    Counter,
    StreamError,
    StreamSpec,
    Subject,
    SubjectError,
    Topology,
    apply,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def counter(bus: Bus, namespace: Any) -> Counter:
    """A counter of its own for each test."""
    prefix = namespace.prefix
    stream = StreamSpec(name=f"{prefix}-numbers", subjects=(f"{prefix}.number.*.*",), allow_counter=True)
    await apply(bus, Topology(streams=(stream,)))
    return Counter(name="numbers", subject=Subject(f"{prefix}.number.{{day}}.{{who}}"), stream=stream.name)


async def test_a_number_begins_at_zero_and_adds_up(bus: Bus, peer: Bus, counter: Counter) -> None:
    """Every increment returns the number after it, and every process reads the same number."""
    assert await bus.total(counter, day="1", who="a") == 0
    assert await bus.increment(counter, 5, day="1", who="a") == 5
    assert await peer.increment(counter, -2, day="1", who="a") == 3
    assert await bus.increment(counter, 7, day="1", who="b") == 7
    assert await bus.total(counter, day="1", who="a") == 3


async def test_concurrent_increments_never_lose_each_other(bus: Bus, peer: Bus, counter: Counter) -> None:
    """Each of many increments sees another total, and the last total is the sum."""
    totals: list[int] = []

    async def add(who: Bus) -> None:
        totals.append(await who.increment(counter, 3, day="1", who="a"))

    async with anyio.create_task_group() as group:
        for writer in (bus, peer) * 20:
            group.start_soon(add, writer)
    assert sorted(totals) == [3 * number for number in range(1, 41)]


async def test_a_repeated_increment_counts_once(bus: Bus, peer: Bus, counter: Counter) -> None:
    """With the same message id the number stays, whoever repeats the increment, and is returned."""
    assert await bus.increment(counter, 5, msg_id="once", day="1", who="a") == 5
    await bus.increment(counter, 1, day="1", who="a")
    assert await peer.increment(counter, 5, msg_id="once", day="1", who="a") == 6


async def test_the_history_names_every_increment(bus: Bus, counter: Counter) -> None:
    """The increments of one number, or of all, are read with amount, total, label and keys."""
    await bus.increment(counter, 5, label="first", day="1", who="a")
    await bus.increment(counter, 2, day="1", who="b")
    await bus.increment(counter, -4, label="last", day="1", who="a")
    own = [(one.amount, one.total, one.label) async for one in bus.increments(counter, who="a")]
    assert own == [(5, 5, "first"), (-4, 1, "last")]
    everything = [one async for one in bus.increments(counter)]
    assert [one.keys["who"] for one in everything] == ["a", "b", "a"]
    rest = [one.amount async for one in bus.increments(counter, after=everything[0].seq)]
    assert rest == [2, -4]


async def test_a_stream_that_cannot_count_is_an_error(bus: Bus, namespace: Any, journal: Any) -> None:
    """An increment in a stream without counters is refused and stores nothing."""
    wrong = Counter(
        name="wrong", subject=Subject(f"{namespace.prefix}.journal.{{who}}"), stream=journal.stream
    )
    with pytest.raises(StreamError, match="counter"):
        await bus.increment(wrong, 1, who="a")
    assert await bus.last_seq(journal) == 0


async def test_keys_are_checked(bus: Bus, counter: Counter) -> None:
    """A missing key is an error before anything is sent."""
    with pytest.raises(SubjectError, match="day"):
        await bus.increment(counter, 1, who="a")


def test_a_key_must_not_hide_a_parameter() -> None:
    """A counter whose key has the name of a parameter is refused when it is declared."""
    with pytest.raises(TypeError, match="amount"):
        Counter(name="bad", subject=Subject("x.{amount}"), stream="X")
