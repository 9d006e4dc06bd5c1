"""Storing and reading back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec
import pytest

from trunkline_bus import (
    Bus,
    BusError,
    DecodeError,
    SequenceConflict,
    StorageFull,
    StreamSpec,
    StreamUnavailable,
    Subject,
    Topic,
    Topology,
    Transform,
    apply,
)

pytestmark = pytest.mark.anyio


async def test_an_append_is_read_back(bus: Bus, peer: Bus, namespace: Any, journal: Any) -> None:
    """last() gives the message with its sequence, keys and the server's time."""
    ack = await bus.append(journal, namespace.Note(text="one"), who="me")
    found = await peer.last(journal, who="me")
    assert found is not None
    assert (found.seq, found.data.text, found.keys, ack.duplicate) == (ack.seq, "one", {"who": "me"}, False)
    assert abs(datetime.now(UTC) - found.time) < timedelta(minutes=1)
    assert await peer.last(journal, who="nobody") is None


async def test_the_same_message_id_is_stored_once(bus: Bus, peer: Bus, namespace: Any, journal: Any) -> None:
    """The second append is acknowledged with the first sequence and marked as a duplicate."""
    first = await bus.append(journal, namespace.Note(), msg_id="m1", who="me")
    second = await peer.append(journal, namespace.Note(), msg_id="m1", who="me")
    assert (second.seq, second.duplicate) == (first.seq, True)
    assert [one.seq async for one in bus.history(journal)] == [first.seq]


async def test_a_message_id_does_not_soften_an_expectation(bus: Bus, namespace: Any, journal: Any) -> None:
    """Two owners that would write the same step under the same id are still distinguished: the second one conflicts."""
    await bus.append(journal, namespace.Note(), msg_id="step-1", expect=0, who="me")
    with pytest.raises(SequenceConflict):
        await bus.append(journal, namespace.Note(), msg_id="step-1", expect=0, who="me")


async def test_compare_and_set_lets_one_writer_win(bus: Bus, peer: Bus, namespace: Any, journal: Any) -> None:
    """One of many writers with the same expectation succeeds; the others receive the actual sequence."""
    outcomes: list[int | SequenceConflict] = []

    async def write(who: Bus) -> None:
        try:
            outcomes.append((await who.append(journal, namespace.Note(), expect=0, who="me")).seq)
        except SequenceConflict as conflict:
            outcomes.append(conflict)

    async with anyio.create_task_group() as group:
        for writer in (bus, peer) * 5:
            group.start_soon(write, writer)
    winners = [one for one in outcomes if isinstance(one, int)]
    losers = [one for one in outcomes if isinstance(one, SequenceConflict)]
    assert len(winners) == 1
    assert {loser.actual for loser in losers} == set(winners)
    assert {loser.code for loser in losers} == {10071}


async def test_an_expectation_may_span_many_subjects(bus: Bus, namespace: Any, journal: Any) -> None:
    """With a wildcard filter the last message of any of its subjects counts."""
    everybody = journal.subject.wildcard_filter()
    first = await bus.append(journal, namespace.Note(), expect=0, expect_filter=everybody, who="a")
    with pytest.raises(SequenceConflict):
        await bus.append(journal, namespace.Note(), expect=0, expect_filter=everybody, who="b")
    await bus.append(journal, namespace.Note(), expect=first.seq, expect_filter=everybody, who="b")


async def test_the_history_is_complete_and_in_order(bus: Bus, namespace: Any, journal: Any) -> None:
    """More messages than one page, of one subject among others, from any point on."""
    async with anyio.create_task_group() as group:
        for number in range(700):
            group.start_soon(
                _append, bus, journal, namespace.Note(number=number), "me" if number % 2 else "you"
            )
    everything = [one async for one in bus.history(journal)]
    assert [one.seq for one in everything] == list(range(1, 701))
    mine = [one async for one in bus.history(journal, who="me")]
    assert [one.seq for one in mine] == [one.seq for one in everything if one.keys["who"] == "me"]
    late = [one.seq async for one in bus.history(journal, after=690, who="me")]
    assert late == [one.seq for one in mine if one.seq > 690]
    assert [one async for one in bus.history(journal, who="nobody")] == []


async def _append(bus: Bus, topic: Any, payload: Any, who: str) -> None:
    await bus.append(topic, payload, who=who)


async def test_a_union_is_read_back_member_by_member(bus: Bus, namespace: Any, journal: Any) -> None:
    """A topic may carry several payloads."""
    await bus.append(namespace.either, namespace.Note(number=1), who="me")
    await bus.append(namespace.either, namespace.Other(flag=True), who="me")
    assert [one.data async for one in bus.history(namespace.either)] == [
        namespace.Note(number=1),
        namespace.Other(flag=True),
    ]
    with pytest.raises(DecodeError, match=r"test\.other\.v1"):
        await bus.last(journal, who="me")


async def test_a_transformed_stream_is_read_by_its_stored_subject(bus: Bus, namespace: Any) -> None:
    """Keys of the stored subject may include the transform's additions, here a partition."""
    p = namespace.prefix
    spec = StreamSpec(
        name=p,
        subjects=(f"{p}.turn.*",),
        transform=Transform(f"{p}.turn.*", f"{p}.turn.{{{{partition(4,1)}}}}.{{{{wildcard(1)}}}}"),
    )
    topic = Topic(
        "turn",
        Subject(f"{p}.turn.{{who}}"),
        namespace.Note,
        stream=p,
        stored=Subject(f"{p}.turn.{{part}}.{{who}}"),
    )
    await apply(bus, Topology(streams=(spec,)))
    await bus.append(topic, namespace.Note(text="x"), who="me")
    found = await bus.last(topic, who="me")
    assert found is not None
    assert found.keys["who"] == "me"
    assert found.keys["part"] in "0123"


async def test_deleting_and_purging(bus: Bus, namespace: Any, journal: Any) -> None:
    """One message by sequence, or all of a key."""
    acks = [await bus.append(journal, namespace.Note(), who=who) for who in ("a", "a", "b")]
    await bus.delete(journal, acks[0].seq)
    assert [one.seq async for one in bus.history(journal)] == [acks[1].seq, acks[2].seq]
    await bus.purge(journal, who="a")
    assert [one.seq async for one in bus.history(journal)] == [acks[2].seq]


async def test_a_missing_stream_is_unavailable(bus: Bus, namespace: Any) -> None:
    """Append waits its timeout for the stream to come; reading says at once that there is none."""
    with pytest.raises(StreamUnavailable):
        await bus.append(namespace.journal, namespace.Note(), timeout=0.2, who="me")
    with pytest.raises(StreamUnavailable, match="topology"):
        await bus.last(namespace.journal)


async def test_an_append_waits_for_a_stream_that_is_just_being_made(
    bus: Bus, peer: Bus, namespace: Any
) -> None:
    """Workers may start in any order."""
    async with anyio.create_task_group() as group:
        group.start_soon(_append, bus, namespace.journal, namespace.Note(), "me")
        await anyio.sleep(0.1)
        await apply(peer, namespace.topology)
    assert await bus.last(namespace.journal, who="me") is not None


async def test_a_full_stream_is_named_as_such(bus: Bus, namespace: Any) -> None:
    """StorageFull, not a bare number; nothing is stored."""
    await apply(
        bus, Topology(streams=(msgspec.structs.replace(namespace.stream, max_bytes=2000, discard="new"),))
    )
    with pytest.raises(StorageFull, match="free disk space or raise"):
        for _ in range(20):
            await bus.append(namespace.journal, namespace.Note(text="x" * 200), who="me")
    assert len([one async for one in bus.history(namespace.journal)]) < 10


async def test_a_topic_without_a_stream_cannot_be_appended(bus: Bus, namespace: Any) -> None:
    """The error names the topic and what to do."""
    with pytest.raises(BusError, match="live names no stream"):
        await bus.append(namespace.live, namespace.Note(), who="me")


async def test_infrastructure_headers_go_with_an_append(bus: Bus, namespace: Any) -> None:
    """A schedule stored through headers fires by the server itself."""
    p = namespace.prefix
    await apply(
        bus,
        Topology(
            streams=(StreamSpec(name=p, subjects=(f"{p}.>",), allow_schedules=True, allow_msg_ttl=True),)
        ),
    )
    due = Topic("due", Subject(f"{p}.due.{{who}}"), namespace.Note, stream=p)
    plan = Topic("plan", Subject(f"{p}.plan.{{who}}"), namespace.Note, stream=p)
    at = (datetime.now(UTC) + timedelta(seconds=1)).strftime("@at %Y-%m-%dT%H:%M:%SZ")
    headers = {"Nats-Schedule": at, "Nats-Schedule-Target": f"{p}.due.me"}
    await bus.append(plan, namespace.Note(text="remind"), headers=headers, who="me")
    with anyio.fail_after(60):
        async with bus.pinned(namespace.consumer(filter=f"{p}.due.*", pinned_group=None), due) as deliveries:
            assert (await anext(deliveries)).data.text == "remind"
