"""Durable consumers pinned to one live client."""

import signal
import time
from typing import Any

import anyio
import pytest

from trunkline_bus import Bus, Topology, apply
from trunkline_bus.streams.retry import request_with_retry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def consumer(bus: Bus, namespace: Any, journal: Any) -> Any:
    """A pinned consumer of the journal; a pin lasts one second."""
    spec = namespace.consumer(ack_wait=1.0)
    await apply(bus, Topology(consumers=(spec,)))
    return spec


async def test_a_delivery_carries_message_and_pin(
    bus: Bus, namespace: Any, journal: Any, consumer: Any
) -> None:
    """Sequence, keys, payload and pin; acknowledged it never comes again."""
    ack = await bus.append(journal, namespace.Note(text="x"), who="me")
    async with bus.pinned(consumer, journal) as deliveries:
        one = await anext(deliveries)
        assert (one.seq, one.keys, one.data.text, one.redelivered) == (ack.seq, {"who": "me"}, "x", False)
        assert one.pin
        await one.ack(confirm=True)
        await bus.append(journal, namespace.Note(text="y"), who="me")
        assert (await anext(deliveries)).data.text == "y"


async def test_only_one_client_gets_the_messages(
    bus: Bus, peer: Bus, namespace: Any, journal: Any, consumer: Any, eventually: Any
) -> None:
    """While the pin's owner is alive, a second client gets nothing, for any length of time."""
    got: dict[str, list[int]] = {"first": [], "second": []}

    async def take(who: Bus, name: str) -> None:
        async with who.pinned(consumer, journal) as deliveries:
            async for delivery in deliveries:
                got[name].append(delivery.seq)
                await delivery.ack()

    async with anyio.create_task_group() as group:
        group.start_soon(take, bus, "first")
        group.start_soon(take, peer, "second")
        for number in range(30):
            await bus.append(journal, namespace.Note(number=number), who="me")
            await anyio.sleep(0.1)  # longer in all than a pin lasts
        await eventually(lambda: len(got["first"]) + len(got["second"]) == 30)
        group.cancel_scope.cancel()
    assert sorted(map(len, got.values())) == [0, 30]
    assert sorted(got["first"] + got["second"]) == list(range(1, 31))


async def test_leaving_releases_the_pin_at_once(bus: Bus, peer: Bus, namespace: Any, journal: Any) -> None:
    """The next client gets the untaken messages, and all later ones, long before the pin would have expired."""
    spec = namespace.consumer(name="long", pin_timeout=300.0, ack_wait=300.0)
    await apply(bus, Topology(consumers=(spec,)))
    for number in range(3):
        await bus.append(journal, namespace.Note(number=number), who="me")
    async with bus.pinned(spec, journal) as deliveries:
        await (await anext(deliveries)).ack(confirm=True)
    async with peer.pinned(spec, journal) as waiting:
        with anyio.fail_after(60):
            assert {(await anext(waiting)).data.number for _ in range(2)} == {1, 2}
            await bus.append(journal, namespace.Note(number=3), who="me")
            assert (await anext(waiting)).data.number == 3


async def test_a_killed_process_loses_its_pin(
    server: Any, bus: Bus, namespace: Any, journal: Any, consumer: Any, child: Any
) -> None:
    """After SIGKILL the next client gets the unacknowledged messages of the killed one, and all later ones."""
    source = """
import anyio, sys
from trunkline_bus import *
class Note(Payload, frozen=True, kw_only=True, tag="test.note.v1"):
    text: str = ""
    number: int = 0
url, user, password, prefix = sys.argv[1:]
topic = Topic("journal", Subject(prefix + ".journal.{who}.noted"), Note, stream=prefix)
spec = ConsumerSpec(stream=prefix, name="one", filter=prefix + ".journal.>", pinned_group="owners",
                    pin_timeout=1.0, ack_wait=1.0)
async def main():
    async with connect(BusSettings(url=url, user=user, password=password)) as bus:
        async with bus.pinned(spec, topic) as deliveries:
            async for one in deliveries:
                print(one.seq, flush=True)
                if one.seq == 1:
                    await one.ack(confirm=True)
anyio.run(main)
"""
    process = child(source, server.url, server.user, server.password, namespace.prefix)
    await bus.append(journal, namespace.Note(number=1), who="me")
    await bus.append(journal, namespace.Note(number=2), who="me")
    lines = [await anyio.to_thread.run_sync(process.stdout.readline) for _ in range(2)]
    assert lines == ["1\n", "2\n"]
    async with bus.pinned(consumer, journal) as deliveries:
        process.send_signal(signal.SIGKILL)
        await bus.append(journal, namespace.Note(number=3), who="me")
        with anyio.fail_after(60):
            got = [await anext(deliveries) for _ in range(2)]
    assert sorted(one.seq for one in got) == [2, 3]
    assert [one.redelivered for one in got if one.seq == 2] == [True]


async def test_the_pin_is_kept_while_nothing_is_pulled(
    bus: Bus, peer: Bus, namespace: Any, journal: Any, consumer: Any
) -> None:
    """A holder busy with its first message longer than a pin lasts keeps the pin, and what waits is not redelivered."""
    async with bus.pinned(consumer, journal) as deliveries:
        for number in range(3):
            await bus.append(journal, namespace.Note(number=number), who="me")
        first = await anext(deliveries)
        async with peer.pinned(consumer, journal) as others:
            with anyio.move_on_after(2.5):
                while True:
                    await first.in_progress()
                    with anyio.move_on_after(0.3):
                        pytest.fail(f"the other client got {await anext(others)}")
        await first.ack()
        rest = [await anext(deliveries) for _ in range(2)]
        assert [(one.data.number, one.redelivered) for one in rest] == [(1, False), (2, False)]


async def test_nak_redelivers_after_the_delay(bus: Bus, namespace: Any, journal: Any, consumer: Any) -> None:
    """nak(delay) is redelivered not before the delay; term() never."""
    await bus.append(journal, namespace.Note(number=1), who="me")
    async with bus.pinned(consumer, journal) as deliveries:
        first = await anext(deliveries)
        asked = time.monotonic()
        await first.nak(0.3)
        again = await anext(deliveries)
        assert again.redelivered
        assert time.monotonic() - asked >= 0.29
        await again.term("enough")
        await bus.append(journal, namespace.Note(number=2), who="me")
        assert (await anext(deliveries)).data.number == 2


async def test_a_missing_consumer_is_made(bus: Bus, namespace: Any, journal: Any) -> None:
    """Pulling from a consumer that was deleted makes it again from its spec."""
    spec = namespace.consumer(name="gone")
    async with bus.pinned(spec, journal) as deliveries:
        await bus.append(journal, namespace.Note(number=1), who="me")
        await (await anext(deliveries)).ack(confirm=True)
        await request_with_retry(bus.link, f"CONSUMER.DELETE.{namespace.prefix}.gone")
        with anyio.fail_after(60):
            assert (await anext(deliveries)).data.number == 1


async def test_without_a_group_all_consumers_receive_messages(
    bus: Bus, peer: Bus, namespace: Any, journal: Any, eventually: Any
) -> None:
    """An unpinned consumer shares its messages among all who pull, each message once."""
    spec = namespace.consumer(name="shared", pinned_group=None, batch=1)
    await apply(bus, Topology(consumers=(spec,)))
    got: list[int] = []

    async def take(who: Bus) -> None:
        async with who.pinned(spec, journal) as deliveries:
            async for delivery in deliveries:
                assert delivery.pin == ""
                got.append(delivery.seq)
                await delivery.ack()

    async with anyio.create_task_group() as group:
        group.start_soon(take, bus)
        group.start_soon(take, peer)
        for number in range(50):
            await bus.append(journal, namespace.Note(number=number), who="me")
        await eventually(lambda: len(got) == 50)
        group.cancel_scope.cancel()
    assert sorted(got) == list(range(1, 51))
