"""Large payloads travel through the object store, unseen by sender and receiver."""

from typing import Any

import pytest

from trunkline_bus import Bus, ObjectStoreSpec, apply, service
from trunkline_bus.streams.retry import request_with_retry

pytestmark = pytest.mark.anyio

BIG = "y" * 1_000_000


async def test_a_large_call_and_reply(bus: Bus, peer: Bus, namespace: Any) -> None:
    """A megabyte is sent and returned."""

    async def echo(request: Any) -> Any:
        return request.data

    async with service(peer, name="echo", version="1.0.0") as running:
        await running.add(namespace.ask, echo)
        assert (await bus.call(namespace.ask, namespace.Note(text=BIG), who="me")).text == BIG


async def test_a_large_append_is_read_back(bus: Bus, peer: Bus, namespace: Any, journal: Any) -> None:
    """The stream holds a small message; last, history and pinned give the whole one."""
    await bus.append(journal, namespace.Note(text=BIG), who="me")
    found = await peer.last(journal, who="me")
    assert found is not None
    assert found.data.text == BIG
    assert [one.data.text == BIG async for one in peer.history(journal)] == [True]
    async with peer.pinned(namespace.consumer(), journal) as deliveries:
        delivery = await anext(deliveries)
        assert delivery.data.text == BIG
        await delivery.ack()
    info = await request_with_retry(bus.link, f"STREAM.INFO.{namespace.prefix}")
    assert info["state"]["bytes"] < 2000


async def test_large_messages_do_not_hold_up_small_ones_elsewhere(
    bus: Bus, peer: Bus, namespace: Any
) -> None:
    """A listener receives large and small messages, in order."""
    async with peer.listen(namespace.live) as received:
        await bus.publish(namespace.live, namespace.Note(text=BIG), who="me")
        await bus.publish(namespace.live, namespace.Note(text="small"), who="me")
        assert [(await anext(received)).data.text[:5] for _ in range(2)] == ["yyyyy", "small"]


async def test_a_message_whose_object_is_missing_becomes_a_dead_letter(
    bus: Bus, peer: Bus, namespace: Any, dial: Any, server: Any
) -> None:
    """When the claimed bytes are missing the message becomes a dead letter, and the subscription continues."""
    claims = f"claims-{namespace.prefix}"
    sender = await dial(server, "sender", claims=claims)
    lost = await dial(server, "lost", claims=f"{claims}-elsewhere")
    await apply(bus, namespace.topology)
    async with (
        lost.listen(namespace.live) as received,
        bus.listen(namespace.dead, reason="claim_missing") as dead,
    ):
        await sender.publish(namespace.live, namespace.Note(text=BIG), who="me")
        await sender.publish(namespace.live, namespace.Note(text="small"), who="me")
        assert (await anext(received)).data.text == "small"
        assert (await anext(dead)).data.size < 1000


async def test_the_threshold_is_a_setting(bus: Bus, namespace: Any, dial: Any, server: Any) -> None:
    """Above claim_threshold bytes an object appears, below it none."""
    claims = f"claims-{namespace.prefix}"
    sender = await dial(server, "sender", claims=claims, claim_threshold=1000)
    async with bus.listen(namespace.live):
        await sender.publish(namespace.live, namespace.Note(text="x" * 100), who="me")
        await sender.publish(namespace.live, namespace.Note(text="x" * 2000), who="me")
    assert len(await bus.objects(ObjectStoreSpec(name=claims)).names()) == 1
