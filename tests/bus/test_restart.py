"""The effects of a kill -9 of the server: a short delay, and no loss."""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline_bus import (
    BucketSpec,
    CallTimeout,
    ConnectionFailed,
    EmbeddedServer,
    ServerSettings,
    StreamUnavailable,
    Topology,
    apply,
    connect,
    service,
)

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


async def test_acknowledged_messages_are_neither_lost_nor_duplicated(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any, eventually: Any
) -> None:
    """Many appends run while the server is killed twice. All succeed, and the stream holds each exactly once."""
    bus = await dial(own_server)
    await apply(bus, namespace.topology)
    acks: dict[int, int] = {}
    stop = False

    async def write(worker: int) -> None:
        number = worker
        while not stop:
            acks[number] = (
                await bus.append(namespace.journal, namespace.Note(number=number), who=f"w{worker}")
            ).seq
            number += 8

    async with anyio.create_task_group() as group:
        for worker in range(8):
            group.start_soon(write, worker)
        for _ in range(2):
            before = len(acks)
            await kill_server(own_server)
            await eventually(lambda: len(acks) >= before + 50)  # noqa: B023 - awaited here
        stop = True
    stored = {one.seq: one.data.number async for one in bus.history(namespace.journal)}
    assert sorted(stored.values()) == sorted(acks)
    assert {number: seq for seq, number in stored.items()} == acks


async def test_a_chain_of_compare_and_set_survives(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any, eventually: Any
) -> None:
    """A single writer that always expects its own last sequence never meets a conflict with itself."""
    bus = await dial(own_server)
    await apply(bus, namespace.topology)
    done: list[int] = []
    stop = False

    async def chain() -> None:
        last = 0
        while not stop:
            last = (
                await bus.append(namespace.journal, namespace.Note(number=len(done)), expect=last, who="me")
            ).seq
            done.append(last)

    async with anyio.create_task_group() as group:
        group.start_soon(chain)
        for _ in range(3):
            before = len(done)
            await kill_server(own_server)
            await eventually(lambda: len(done) >= before + 20)  # noqa: B023 - awaited here
        stop = True
    numbers = [one.data.number async for one in bus.history(namespace.journal)]
    assert numbers == list(range(len(done)))


async def test_listeners_resume_and_report_the_gap(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any, eventually: Any
) -> None:
    """After the reconnection messages flow by themselves; the first one carries the gap mark."""
    bus, peer = await dial(own_server, "a"), await dial(own_server, "b")
    got: list[int] = []
    again: list[str] = []

    async def note(message: Any) -> None:
        got.append(message.data.number)

    async def reconnected() -> None:
        again.append("once more")

    bus.on_reconnect(reconnected)
    peer.on_reconnect(reconnected)
    await peer.subscribe(namespace.live, note)
    async with peer.listen(namespace.live) as received:
        await bus.publish(namespace.live, namespace.Note(number=1), who="me")
        assert not (await anext(received)).gap
        await kill_server(own_server)
        await eventually(lambda: len(again) == 2)
        await bus.publish(namespace.live, namespace.Note(number=2), who="me")
        with anyio.fail_after(60):
            message = await anext(received)
        assert (message.data.number, message.gap) == (2, True)
    await eventually(lambda: got == [1, 2])


async def test_pulling_continues_and_unacknowledged_work_is_redelivered(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any
) -> None:
    """A pinned consumer resumes and nothing is lost. (The server may forget an ack it had not written yet.)"""
    bus = await dial(own_server)
    consumer = namespace.consumer(ack_wait=1.0)
    await apply(bus, Topology(streams=(namespace.stream,), consumers=(consumer,)))
    async with bus.pinned(consumer, namespace.journal) as deliveries:
        for number in range(4):
            await bus.append(namespace.journal, namespace.Note(number=number), who="me")
        for _ in range(2):
            await (await anext(deliveries)).ack(confirm=True)
        await kill_server(own_server)
        await bus.append(namespace.journal, namespace.Note(number=4), who="me")
        seen: set[int] = set()
        with anyio.fail_after(60):
            while not seen >= {2, 3, 4}:
                delivery = await anext(deliveries)
                seen.add(delivery.data.number)
                await delivery.ack()
    assert seen <= set(range(5))


async def test_services_answer_again(own_server: Any, dial: Any, namespace: Any, kill_server: Any) -> None:
    """A call made right after the kill is answered once both sides are back."""
    bus, peer = await dial(own_server, "a"), await dial(own_server, "b")

    async def echo(request: Any) -> Any:
        return request.data

    async with service(peer, name="echo", version="1.0.0") as running:
        await running.add(namespace.ask, echo)
        for number in range(3):
            assert (await bus.call(namespace.ask, namespace.Note(number=number), who="me")).number == number
            await kill_server(own_server)
            reply = await bus.call(namespace.ask, namespace.Note(number=10 + number), timeout=60, who="me")
            assert reply.number == 10 + number


async def test_a_call_with_a_lost_reply_times_out(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any
) -> None:
    """The request is not repeated once a service may have handled it."""
    bus, peer = await dial(own_server, "a"), await dial(own_server, "b")
    handled: list[int] = []
    taken, release = anyio.Event(), anyio.Event()

    async def slow(request: Any) -> Any:
        handled.append(request.data.number)
        taken.set()
        await release.wait()
        return request.data

    async def kill_when_taken() -> None:
        await taken.wait()
        await kill_server(own_server)

    async with service(peer, name="slow", version="1.0.0") as running, anyio.create_task_group() as group:
        await running.add(namespace.ask, slow)
        group.start_soon(kill_when_taken)
        with pytest.raises(CallTimeout):
            await bus.call(namespace.ask, namespace.Note(number=7), timeout=2, who="me")
        release.set()
    assert handled == [7]


async def test_a_repeatable_call_is_sent_again(
    own_server: Any, dial: Any, namespace: Any, kill_server: Any
) -> None:
    """Long before its timeout: at once when the connection is back."""
    bus, peer = await dial(own_server, "a"), await dial(own_server, "b")
    handled: list[int] = []
    taken, release = anyio.Event(), anyio.Event()

    async def first_slow(request: Any) -> Any:
        handled.append(request.data.number)
        if len(handled) == 1:
            taken.set()
            await release.wait()
        return request.data

    async def kill_when_taken() -> None:
        await taken.wait()
        await kill_server(own_server)

    async with service(peer, name="slow", version="1.0.0") as running, anyio.create_task_group() as group:
        await running.add(namespace.ask, first_slow)
        group.start_soon(kill_when_taken)
        with anyio.fail_after(60):
            reply = await bus.call(
                namespace.ask, namespace.Note(number=7), timeout=600, repeatable=True, who="me"
            )
        release.set()
    assert (reply.number, handled) == (7, [7, 7])


async def test_a_repeatable_call_is_sent_again_after_its_service_died(
    own_server: Any, dial: Any, namespace: Any
) -> None:
    """The caller is not told that the service died, so it sends the request again long before its timeout."""
    bus, peer = await dial(own_server, "a"), await dial(own_server, "b")
    handled: list[int] = []
    release = anyio.Event()

    async def dead_at_first(request: Any) -> Any:
        handled.append(request.data.number)
        if len(handled) == 1:
            await release.wait()
        return request.data

    async with service(peer, name="echo", version="1.0.0") as running:
        await running.add(namespace.ask, dead_at_first)
        with anyio.fail_after(60):
            reply = await bus.call(
                namespace.ask, namespace.Note(number=7), timeout=600, repeatable=True, who="me"
            )
        release.set()
    assert (reply.number, handled) == (7, [7, 7])


async def test_a_pin_keeps_its_owner_over_a_server_restart(
    own_server: Any,
    dial: Any,
    namespace: Any,
    kill_server: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server forgets who had it; the others are polite, so that running work keeps its owner.

    They are for longer here than for half a second, in which an owner may not be back on a busy machine.
    """
    monkeypatch.setattr("trunkline_bus.streams.pinned_consumer._COURTESY", 30.0)
    buses = {name: await dial(own_server, name) for name in ("first", "second")}
    consumer = namespace.consumer(ack_wait=5.0)
    await apply(buses["first"], Topology(streams=(namespace.stream,), consumers=(consumer,)))
    owners: list[str] = []
    seen: set[int] = set()

    async def take(name: str) -> None:
        async with buses[name].pinned(consumer, namespace.journal) as deliveries:
            async for delivery in deliveries:
                owners.append(name)
                seen.add(delivery.data.number)
                await delivery.ack()

    async with anyio.create_task_group() as group:
        for name in buses:
            group.start_soon(take, name)
        for number in range(5):
            await buses["second"].append(namespace.journal, namespace.Note(number=number), who="me")
            await eventually(lambda: number in seen)  # noqa: B023 - awaited here
            await kill_server(own_server)
        group.cancel_scope.cancel()
    assert len(set(owners)) == 1, owners


async def test_a_watch_misses_no_change(own_server: Any, dial: Any, namespace: Any, kill_server: Any) -> None:
    """Changes made around the kill arrive, each once and in order."""
    bus = await dial(own_server)
    spec = BucketSpec(name=namespace.prefix, payload=namespace.Note, history=10)
    await apply(bus, Topology(buckets=(spec,)))
    bucket = bus.kv(spec)
    async with bucket.watch() as changes:
        for number in range(3):
            await bucket.put("k", namespace.Note(number=number))
        first = await anext(changes)
        await kill_server(own_server)
        for number in range(3, 6):
            await bucket.put("k", namespace.Note(number=number))
        with anyio.fail_after(60):
            rest = [await anext(changes) for _ in range(5)]
    assert [one.value.number for one in [first, *rest]] == list(range(6))


async def test_without_a_server_calls_fail_within_their_timeouts(
    namespace: Any, settings_for: Any, tmp_path: Path, eventually: Any
) -> None:
    """Without any server append and call fail within their timeouts with an error; once it is back everything
    continues by itself."""
    real = shutil.which(str(Path(sys.executable).parent / "nats-server")) or shutil.which("nats-server")
    binary = tmp_path / "nats-server"
    binary.symlink_to(str(real))
    settings = ServerSettings(store_dir=tmp_path / "s", binary=binary)
    async with EmbeddedServer(settings) as server, connect(settings_for(server)) as bus:
        await apply(bus, namespace.topology)
        binary.unlink()  # so that it cannot be started again for now
        os.kill(server.pid, signal.SIGKILL)
        await eventually(lambda: not bus.connected)
        with anyio.fail_after(60):
            with pytest.raises((ConnectionFailed, StreamUnavailable), match="NATS"):
                await bus.append(namespace.journal, namespace.Note(), timeout=0.5, who="me")
            with pytest.raises(CallTimeout, match="NATS"):
                await bus.call(namespace.ask, namespace.Note(), timeout=0.5, who="me")
        binary.symlink_to(str(real))
        await bus.append(namespace.journal, namespace.Note(text="on"), timeout=60, who="me")
