"""Typed buckets of keys and of objects."""

from typing import Any

import anyio
import pytest

from trunkline_bus import (
    BucketSpec,
    Bus,
    DecodeError,
    KeyValue,
    ObjectStoreSpec,
    SequenceConflict,
    SubjectError,
    Topology,
    apply,
)
from trunkline_bus.streams.retry import request_with_retry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bucket(bus: Bus, namespace: Any) -> KeyValue[Any]:
    """A bucket of notes."""
    spec = BucketSpec(name=namespace.prefix, payload=namespace.Note)
    await apply(bus, Topology(buckets=(spec,)))
    return bus.kv(spec)


async def test_a_value_is_put_and_got(bucket: KeyValue[Any], namespace: Any) -> None:
    """With its revision; a key without a value is None."""
    assert await bucket.get("a.b") is None
    revision = await bucket.put("a.b", namespace.Note(text="x"))
    entry = await bucket.get("a.b")
    assert entry is not None
    assert (entry.value, entry.revision, entry.key) == (namespace.Note(text="x"), revision, "a.b")


async def test_create_needs_an_empty_key(bucket: KeyValue[Any], namespace: Any) -> None:
    """One of many creators wins; after a delete the key is free again."""
    outcomes: list[str] = []

    async def create(number: int) -> None:
        try:
            await bucket.create("lock", namespace.Note(number=number))
            outcomes.append("won")
        except SequenceConflict:
            outcomes.append("lost")

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(create, number)
    assert sorted(outcomes) == ["lost"] * 4 + ["won"]
    await bucket.delete("lock")
    await bucket.create("lock", namespace.Note())


async def test_update_and_delete_need_the_revision(bucket: KeyValue[Any], namespace: Any) -> None:
    """A stale revision conflicts and changes nothing."""
    first = await bucket.put("k", namespace.Note(number=1))
    second = await bucket.update("k", namespace.Note(number=2), first)
    with pytest.raises(SequenceConflict):
        await bucket.update("k", namespace.Note(number=3), first)
    with pytest.raises(SequenceConflict):
        await bucket.delete("k", first)
    entry = await bucket.get("k")
    assert entry is not None
    assert (entry.value.number, entry.revision) == (2, second)


async def test_keys_lists_existing_keys(bucket: KeyValue[Any], namespace: Any) -> None:
    """Deleted keys are not listed; a wildcard narrows."""
    for key in ("a.1", "a.2", "b.1"):
        await bucket.put(key, namespace.Note())
    await bucket.delete("a.2")
    assert sorted(await bucket.keys()) == ["a.1", "b.1"]
    assert await bucket.keys("a.*") == ["a.1"]
    assert await bucket.keys("z.*") == []


async def test_a_key_expires(bucket: KeyValue[Any], namespace: Any) -> None:
    """A key with a ttl of a second is removed soon after, and a watcher is notified."""
    async with bucket.watch() as changes:
        await bucket.put("short", namespace.Note(), ttl=1)
        await bucket.put("long", namespace.Note())
        assert [(await anext(changes)).key for _ in range(2)] == ["short", "long"]
        with anyio.fail_after(60):
            gone = await anext(changes)
    assert (gone.key, gone.value) == ("short", None)
    assert await bucket.get("short") is None
    assert await bucket.keys() == ["long"]


async def test_a_watch_begins_with_the_existing_values(bucket: KeyValue[Any], namespace: Any) -> None:
    """Present values first, then changes; with current=False changes only. Deletes come as None."""
    await bucket.put("a", namespace.Note(number=1))
    await bucket.put("a", namespace.Note(number=2))
    async with bucket.watch() as all_changes, bucket.watch(current=False) as later:
        assert (await anext(all_changes)).value.number == 2
        with anyio.move_on_after(0.1):
            pytest.fail(str(await anext(later)))
        await bucket.delete("a")
        for changes in (all_changes, later):
            assert ((await anext(changes)).value) is None


async def test_a_value_of_another_type_is_a_decode_error(
    bus: Bus, bucket: KeyValue[Any], namespace: Any
) -> None:
    """Its key and bucket are named."""
    await bus.link.request(f"$KV.{namespace.prefix}.odd", b"not json", timeout=5)
    with pytest.raises(DecodeError, match=f"odd.*{namespace.prefix}"):
        await bucket.get("odd")


@pytest.mark.parametrize("key", ["", "a b", "a..b", "*", ">", ".a"])
async def test_bad_keys_are_refused(bucket: KeyValue[Any], key: str) -> None:
    """No wildcards, blanks or empty words."""
    with pytest.raises(SubjectError):
        await bucket.get(key)


async def test_objects_of_any_size(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Objects are put, replaced, listed and deleted; a replaced object leaves no bytes behind."""
    spec = ObjectStoreSpec(name=namespace.prefix)
    await apply(bus, Topology(objects=(spec,)))
    store, other = bus.objects(spec), peer.objects(spec)
    for body in (b"", b"small", bytes(range(256)) * 4000):
        await store.put("some thing/ä", body)
        assert await other.get("some thing/ä") == body
    assert await other.names() == ["some thing/ä"]
    info = await other.info("some thing/ä")
    assert info is not None
    assert (info.size, info.chunks) == (1_024_000, 8)
    await other.delete("some thing/ä")
    assert await store.get("some thing/ä") is None
    state = (await request_with_retry(bus.link, f"STREAM.INFO.{spec.stream_name}"))["state"]
    assert state["bytes"] < 1000


async def test_stock_clients_read_the_same_bucket(bus: Bus, server: Any, namespace: Any) -> None:
    """Objects and keys are laid out as NATS lays them out."""
    import nats

    objects = ObjectStoreSpec(name=namespace.prefix)
    keys = BucketSpec(name=namespace.prefix, payload=namespace.Note)
    await apply(bus, Topology(objects=(objects,), buckets=(keys,)))
    await bus.objects(objects).put("o", b"x" * 300_000)
    await bus.kv(keys).put("k", namespace.Note(number=5))
    client = await nats.connect(server.url, user=server.user, password=server.password)
    context = client.jetstream()
    store = await context.object_store(namespace.prefix)
    assert (await store.get("o")).data == b"x" * 300_000
    bucket = await context.key_value(namespace.prefix)
    assert b'"number":5' in ((await bucket.get("k")).value or b"")
    await client.close()
