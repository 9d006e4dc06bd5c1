"""Streams and consumers as data."""

from typing import Any

import anyio
import msgspec
import pytest

from trunkline_bus import (
    BucketSpec,
    Bus,
    ObjectStoreSpec,
    StorageFull,
    StreamSpec,
    Topology,
    TopologyConflict,
    Transform,
    apply,
)
from trunkline_bus.streams import topology
from trunkline_bus.streams.retry import request_with_retry

pytestmark = pytest.mark.anyio


def _everything(namespace: Any) -> Topology:
    p = namespace.prefix
    return Topology(
        streams=(
            namespace.stream,
            StreamSpec(
                name=f"{p}-turns",
                subjects=(f"{p}.turn.*",),
                retention="workqueue",
                transform=Transform(f"{p}.turn.*", f"{p}.turn.{{{{partition(4,1)}}}}.{{{{wildcard(1)}}}}"),
                max_age=3600,
            ),
            StreamSpec(name=f"{p}-feed", subjects=(f"{p}.feed.>",), persist_async=True, max_age=60),
            StreamSpec(name=f"{p}-timer", subjects=(f"{p}.at.>",), allow_schedules=True, allow_msg_ttl=True),
            StreamSpec(name=f"{p}-count", subjects=(f"{p}.count.>",), allow_counter=True),
            StreamSpec(
                name=f"{p}-mem", subjects=(f"{p}.mem.>",), storage="memory", max_msgs=10, discard="new"
            ),
        ),
        consumers=(
            namespace.consumer(),
            namespace.consumer(name="two", pinned_group=None, backoff=(1.0, 5.0), max_deliver=3),
        ),
        buckets=(BucketSpec(name=p, payload=namespace.Note, ttl=60, history=3),),
        objects=(ObjectStoreSpec(name=p, ttl=60),),
    )


async def test_applying_twice_changes_nothing(bus: Bus, namespace: Any) -> None:
    """The first time everything is created, the second time nothing happens."""
    first = await apply(bus, _everything(namespace))
    assert {change.action for change in first} == {"created"}
    assert len(first) == 10
    assert await apply(bus, _everything(namespace)) == []


async def test_many_workers_may_apply_at_once(bus: Bus, peer: Bus, namespace: Any) -> None:
    """None of them fails, in any order."""
    async with anyio.create_task_group() as group:
        for worker in (bus, peer) * 4:
            group.start_soon(apply, worker, _everything(namespace))
    assert await apply(bus, _everything(namespace)) == []


async def test_a_changed_setting_is_updated_and_named(bus: Bus, namespace: Any, journal: Any) -> None:
    """Messages stay; the change lists the setting; what an operator set besides is kept."""
    await bus.append(journal, namespace.Note(text="kept"), who="me")
    config = (await request_with_retry(bus.link, f"STREAM.INFO.{namespace.prefix}"))["config"]
    await request_with_retry(
        bus.link, f"STREAM.UPDATE.{namespace.prefix}", {**config, "metadata": {"team": "red"}}
    )
    changed = msgspec.structs.replace(namespace.stream, max_age=3600.0)
    [change] = await apply(bus, Topology(streams=(changed,)))
    assert (change.name, change.action) == (namespace.prefix, "updated")
    assert "max_age" in change.settings
    assert (await bus.last(journal, who="me")) is not None
    config = (await request_with_retry(bus.link, f"STREAM.INFO.{namespace.prefix}"))["config"]
    assert config["metadata"]["team"] == "red"


async def test_an_unchangeable_setting_is_a_conflict_that_names_it(
    bus: Bus, namespace: Any, journal: Any
) -> None:
    """The error names stream and setting and says what to do; nothing is changed."""
    changed = msgspec.structs.replace(namespace.stream, storage="memory")
    with pytest.raises(TopologyConflict, match=f"stream {namespace.prefix} .*storage.*delete it") as caught:
        await apply(bus, Topology(streams=(changed,)))
    assert caught.value.setting == "storage"
    assert await apply(bus, namespace.topology) == []


async def test_a_stream_is_recreated_though_the_deletion_is_repeated(
    bus: Bus, namespace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow disk the reply to a deletion comes too late, and that to the repeated one says that there is no
    stream."""

    async def late(link: Any, operation: str, *body: Any) -> dict[str, Any]:
        if operation.startswith("STREAM.DELETE."):
            await request_with_retry(link, operation, *body)
        return await request_with_retry(link, operation, *body)

    monkeypatch.setattr(topology, "request_with_retry", late)
    await apply(bus, namespace.topology)
    changed = msgspec.structs.replace(namespace.stream, storage="memory")
    [change] = await apply(bus, Topology(streams=(changed,)), remake=(namespace.prefix,))
    assert (change.name, change.action) == (namespace.prefix, "created")


async def test_a_consumer_is_updated_or_conflicts(bus: Bus, namespace: Any, journal: Any) -> None:
    """ack_wait may change, the deliver policy may not."""
    await apply(bus, Topology(consumers=(namespace.consumer(),)))
    [change] = await apply(bus, Topology(consumers=(namespace.consumer(ack_wait=7.0),)))
    assert change.settings == ("ack_wait",)
    with pytest.raises(TopologyConflict, match="deliver_policy") as caught:
        await apply(bus, Topology(consumers=(namespace.consumer(ack_wait=7.0, deliver="new"),)))
    assert caught.value.setting == "deliver_policy"


async def test_overlapping_subjects_are_a_conflict(bus: Bus, namespace: Any, journal: Any) -> None:
    """A second stream over the same subjects is refused with the server's words."""
    other = StreamSpec(name=f"{namespace.prefix}-b", subjects=(f"{namespace.prefix}.journal.x",))
    with pytest.raises(TopologyConflict, match="overlap"):
        await apply(bus, Topology(streams=(other,)))


def test_a_storage_error_is_not_a_conflict() -> None:
    """JetStream's report of a full disk is a separate error."""
    from trunkline_bus.streams.jetstream_protocol import error_of

    for code, text in (
        (10047, "insufficient storage resources available"),
        (10077, "no space left on device"),
    ):
        assert isinstance(error_of({"err_code": code, "description": text}, "x"), StorageFull)
