"""An unusable message is kept with its reason, and affects no other message."""

import base64
from typing import Any

import pytest

from trunkline_bus import Bus, CallError, DeadLetter, Endpoint, RemoteFault, Topic, Topology, apply, service
from trunkline_bus.streams.retry import request_with_retry

pytestmark = pytest.mark.anyio


async def _raw(bus: Bus, subject: str, data: bytes) -> None:
    await bus.link.publish(subject, data)


async def test_an_undecodable_message_becomes_a_dead_letter(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The letter holds subject, reason and bytes; the next good message is handled."""
    async with peer.listen(namespace.live) as received, bus.listen(namespace.dead) as dead:
        await _raw(bus, f"{namespace.prefix}.evt.me.said", b"\x00not json")
        await bus.publish(namespace.live, namespace.Note(text="good"), who="me")
        assert (await anext(received)).data.text == "good"
        letter = (await anext(dead)).data
    assert (letter.reason, letter.subject) == ("garbage", f"{namespace.prefix}.evt.me.said")
    assert base64.b64decode(letter.data) == b"\x00not json"


async def test_an_unknown_tag_becomes_a_dead_letter(bus: Bus, peer: Bus, namespace: Any) -> None:
    """A payload of a kind this program does not know is named in the letter."""
    other = Topic("other", namespace.live.subject, namespace.Other)
    async with (
        peer.listen(namespace.live) as received,
        bus.listen(namespace.dead, reason="unknown_type") as dead,
    ):
        await bus.publish(other, namespace.Other(flag=True), who="me")
        await bus.publish(namespace.live, namespace.Note(text="good"), who="me")
        assert (await anext(received)).data.text == "good"
        assert "test.other.v1" in (await anext(dead)).data.detail


async def test_a_message_whose_handler_fails_becomes_a_dead_letter(
    bus: Bus, peer: Bus, namespace: Any, eventually: Any
) -> None:
    """The exception is logged, the message kept, the next one handled."""
    done: list[int] = []

    async def brittle(message: Any) -> None:
        if message.data.number == 0:
            raise ZeroDivisionError("a detail for the log alone")
        done.append(message.data.number)

    async with bus.listen(namespace.dead, reason="handler_failed") as dead:
        await peer.subscribe(namespace.live, brittle)
        await bus.publish(namespace.live, namespace.Note(number=0), who="me")
        await bus.publish(namespace.live, namespace.Note(number=1), who="me")
        await eventually(lambda: done == [1])
        letter = (await anext(dead)).data
    assert letter.detail == "ZeroDivisionError"


async def test_a_key_no_template_allows_is_a_dead_letter(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Subjects from elsewhere are checked as well."""
    async with peer.listen(namespace.live), bus.listen(namespace.dead, reason="bad_subject") as dead:
        await _raw(bus, f"{namespace.prefix}.evt.sm@rt.said", b"{}")
        assert (await anext(dead)).data.reason == "bad_subject"


async def test_a_dead_letter_about_a_dead_letter_does_not_exist(bus: Bus, namespace: Any) -> None:
    """Garbage on the dead letter subject ends there."""
    async with bus.listen(namespace.dead) as dead:
        await _raw(bus, f"{namespace.prefix}.dead.garbage", b"garbage")
        await bus.publish(
            namespace.dead, DeadLetter(subject="s", reason="invalid", detail="example"), reason="invalid"
        )
        assert (await anext(dead)).data.detail == "example"


async def test_an_unreadable_request_is_answered_and_kept(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The caller gets the fault bad_request, the dead letters get the bytes, and the service continues."""

    async def echo(request: Any) -> Any:
        return request.data

    wrong = Endpoint("wrong", namespace.ask.subject, namespace.Other, namespace.Note)
    async with service(peer, name="echo", version="1.0.0") as running, bus.listen(namespace.dead) as dead:
        await running.add(namespace.ask, echo)
        with pytest.raises(RemoteFault) as caught:
            await bus.call(wrong, namespace.Other(), who="me")
        assert caught.value.code == "bad_request"
        assert isinstance(caught.value, CallError)
        assert (await anext(dead)).data.reason == "unknown_type"
        assert (await bus.call(namespace.ask, namespace.Note(number=3), who="me")).number == 3


async def test_an_unreadable_delivery_is_stored_and_not_redelivered(
    bus: Bus, peer: Bus, namespace: Any, journal: Any
) -> None:
    """A durable consumer is not blocked by a poisonous message."""
    consumer = namespace.consumer(ack_wait=0.5)
    await apply(bus, Topology(consumers=(consumer,)))
    async with bus.listen(namespace.dead) as dead:
        await _raw(bus, f"{namespace.prefix}.journal.me.noted", b"poison")
        await bus.append(journal, namespace.Note(text="good"), who="me")
        async with peer.pinned(consumer, journal) as deliveries:
            delivery = await anext(deliveries)
            assert delivery.data.text == "good"
            await delivery.ack(confirm=True)
        assert (await anext(dead)).data.reason == "garbage"
    info = await request_with_retry(bus.link, f"CONSUMER.INFO.{namespace.prefix}.one")
    assert (info["num_ack_pending"], info["num_pending"]) == (0, 0)
