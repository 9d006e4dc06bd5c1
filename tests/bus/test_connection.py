"""Connecting, telling and hearing."""

import socket
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from opentelemetry import trace

from trunkline_bus import (
    Bus,
    BusMessage,
    BusSettings,
    ConnectionFailed,
    Scope,
    ServerTooOld,
    connect,
    current_traceparent,
    remote_parent,
)

pytestmark = pytest.mark.anyio


async def test_an_unreachable_server_is_named_at_once() -> None:
    """ConnectionFailed names the address and the cause, and comes without seconds of retrying."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"nats://127.0.0.1:{taken.getsockname()[1]}"
    with (
        anyio.fail_after(60),
        pytest.raises(ConnectionFailed, match=f"cannot reach NATS at {url}: .*refused"),
    ):
        async with connect(BusSettings(url=url)):
            pass


async def test_a_host_that_does_not_exist_is_a_connection_failure() -> None:
    """Name resolution is part of reaching a server."""
    with anyio.fail_after(60), pytest.raises(ConnectionFailed, match="cannot reach NATS"):
        async with connect(BusSettings(url="nats://nats.invalid:4222")):
            pass


async def test_wrong_credentials_are_refused_without_showing_them(server: Any) -> None:
    """The error names authorization and contains no password; nor does a repr of the settings."""
    url = server.url.replace("//", "//someone:sesame@")
    settings = BusSettings(url=url, password="sesame2", user="someone")
    with anyio.fail_after(60), pytest.raises(ConnectionFailed, match=r"(?i)authorization") as caught:
        async with connect(settings):
            pass
    assert "sesame" not in str(caught.value) + repr(settings)


async def test_a_server_that_is_too_old_is_refused() -> None:
    """ServerTooOld names its version and the one needed."""

    async def old_server(stream: Any) -> None:
        async with stream:
            await stream.send(b'INFO {"version":"2.9.25","headers":true,"max_payload":1048576}\r\n')
            while data := await stream.receive():
                if b"PING" in data:
                    await stream.send(b"PONG\r\n")

    async def serve(stream: Any) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await old_server(stream)

    async with anyio.create_task_group() as group:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        group.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with pytest.raises(ServerTooOld, match=r"2\.9\.25.*2\.14"):
            async with connect(BusSettings(url=f"nats://127.0.0.1:{port}")):
                pass
        group.cancel_scope.cancel()


async def test_an_exception_in_the_context_is_raised_unwrapped(server: Any, settings_for: Any) -> None:
    """The task group inside connect is not seen from outside."""
    with pytest.raises(KeyError):
        async with connect(settings_for(server)):
            raise KeyError("mine")


async def test_a_message_arrives_with_its_envelope(
    bus: Bus, peer: Bus, namespace: Any, eventually: Any
) -> None:
    """Keys, scope, source and payload arrive as sent."""
    got: list[Any] = []

    async def note(message: Any) -> None:
        got.append(message)

    await peer.subscribe(namespace.live, note)
    await bus.publish(namespace.live, namespace.Note(text="hi"), scope=Scope(block="b", cause="c"), who="me")
    await eventually(lambda: got)
    assert got[0].data == namespace.Note(text="hi")
    assert got[0].keys == {"who": "me"}
    assert (got[0].envelope.source, got[0].envelope.block, got[0].envelope.cause) == ("first", "b", "c")


async def test_a_key_narrows_a_subscription(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Only messages with the requested key are received."""
    async with peer.listen(namespace.live, who="me") as received:
        await bus.publish(namespace.live, namespace.Note(text="not you"), who="you")
        await bus.publish(namespace.live, namespace.Note(text="you"), who="me")
        assert (await anext(received)).data.text == "you"


async def test_a_listener_receives_messages_sent_right_after_it_started(
    bus: Bus, peer: Bus, namespace: Any
) -> None:
    """The subscription is at the server before the block is entered, so another connection can rely on it."""
    for number in range(300):
        async with peer.listen(namespace.live, who=f"k{number}") as received:
            await bus.publish(namespace.live, namespace.Note(number=number), who=f"k{number}")
            with anyio.fail_after(60):
                assert (await anext(received)).data.number == number


async def test_a_cancelled_subscriber_does_not_end_the_connection(
    bus: Bus, peer: Bus, namespace: Any
) -> None:
    """A subscriber cancelled while it subscribes affects nothing else: the connection receives later messages."""
    for moments in range(30):
        async with anyio.create_task_group() as group:
            group.start_soon(_listen_once, bus, namespace)
            for _ in range(moments):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    async with bus.listen(namespace.live, who="me") as received:
        await peer.publish(namespace.live, namespace.Note(text="later"), who="me")
        with anyio.fail_after(60):
            assert (await anext(received)).data.text == "later"


async def _listen_once(bus: Bus, namespace: Any) -> None:
    async with bus.listen(namespace.live, who="me") as received:
        await anext(received)


async def test_a_queue_group_delivers_each_message_to_one_member(
    bus: Bus, peer: Bus, namespace: Any, eventually: Any
) -> None:
    """Exactly one of two subscriptions in a group handles a message."""
    got: list[tuple[str, int]] = []

    async def first(message: Any) -> None:
        got.append(("first", message.data.number))

    async def second(message: Any) -> None:
        got.append(("second", message.data.number))

    await bus.subscribe(namespace.live, first, queue="workers")
    await peer.subscribe(namespace.live, second, queue="workers")
    for number in range(50):
        await bus.publish(namespace.live, namespace.Note(number=number), who="me")
    await eventually(lambda: len(got) == 50)
    assert sorted(number for _, number in got) == list(range(50))
    assert len({who for who, _ in got}) == 2


async def test_a_slow_handler_does_not_delay_others(bus: Bus, namespace: Any, eventually: Any) -> None:
    """While one subscription is at its limit, other subscriptions and calls on the connection continue."""
    release = anyio.Event()
    running: list[int] = []
    free: list[int] = []

    async def stuck(message: Any) -> None:
        running.append(message.data.number)
        await release.wait()

    async def quick(message: Any) -> None:
        free.append(message.data.number)

    await bus.subscribe(namespace.live, stuck, limit=2)
    await bus.subscribe(namespace.live, quick)
    for number in range(10):
        await bus.publish(namespace.live, namespace.Note(number=number), who="me")
    await eventually(lambda: len(free) == 10)
    assert len(running) == 2
    release.set()
    await eventually(lambda: len(running) == 10)


async def test_a_limit_of_one_keeps_the_order(bus: Bus, namespace: Any, eventually: Any) -> None:
    """Messages are handled one by one as they came."""
    got: list[int] = []

    async def slow(message: Any) -> None:
        await anyio.lowlevel.checkpoint()
        got.append(message.data.number)

    await bus.subscribe(namespace.live, slow, limit=1)
    for number in range(100):
        await bus.publish(namespace.live, namespace.Note(number=number), who="me")
    await eventually(lambda: len(got) == 100)
    assert got == list(range(100))


async def test_draining_finishes_what_arrived(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Every message sent before drain() is handled before it returns; later ones are not."""
    got: list[int] = []

    async def slow(message: Any) -> None:
        await anyio.sleep(0.01)
        got.append(message.data.number)

    subscription = await peer.subscribe(namespace.live, slow, limit=4)
    for number in range(40):
        await bus.publish(namespace.live, namespace.Note(number=number), who="me")
    await bus.drain()
    await subscription.drain()
    assert sorted(got) == list(range(40))
    await bus.publish(namespace.live, namespace.Note(number=99), who="me")
    await bus.drain()
    await peer.drain()
    assert 99 not in got


async def test_a_closed_subscription_cancels_its_handlers(bus: Bus, namespace: Any, eventually: Any) -> None:
    """aclose() does not wait."""
    events: list[str] = []

    async def endless(message: Any) -> None:
        events.append("begun")
        try:
            await anyio.sleep_forever()
        finally:
            events.append("ended")

    subscription = await bus.subscribe(namespace.live, endless)
    await bus.publish(namespace.live, namespace.Note(), who="me")
    await eventually(lambda: events)
    await subscription.aclose()
    await eventually(lambda: events == ["begun", "ended"])


async def test_an_overflowing_listener_drops_the_oldest_and_marks_the_gap(bus: Bus, namespace: Any) -> None:
    """The newest remain; the first of them carries the gap mark."""
    async with bus.listen(namespace.live, buffer=10) as received:
        async with bus.listen(namespace.live, buffer=1000) as control:
            for number in range(100):
                await bus.publish(namespace.live, namespace.Note(number=number), who="me")
            while (await anext(control)).data.number < 99:
                pass
        got = [await anext(received) for _ in range(10)]
    assert [one.data.number for one in got] == list(range(90, 100))
    assert [one.gap for one in got] == [True] + [False] * 9


async def test_the_trace_travels_with_the_message(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The receiver's envelope names the sender's span."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with peer.listen(namespace.live) as received:
        with remote_parent(parent):
            assert current_traceparent() == parent
            await bus.publish(namespace.live, namespace.Note(), who="me")
        assert (await anext(received)).envelope.traceparent == parent
    assert current_traceparent() is None


@pytest.mark.parametrize("text", [None, "", "nonsense", "00-0-0-00"])
def test_a_broken_traceparent_is_ignored(text: str | None) -> None:
    """Nonsense from elsewhere makes no span and no error."""
    with remote_parent(text):
        assert not trace.get_current_span().get_span_context().is_valid


async def test_middleware_can_read_change_and_drop_messages(
    server: Any, dial: Any, namespace: Any, eventually: Any
) -> None:
    """It runs on the way out and in, may change the message, and may keep it."""
    import msgspec

    seen: list[tuple[str, str]] = []

    async def watch(message: BusMessage, proceed: Any) -> None:
        seen.append((message.direction, message.envelope.data.text))
        if message.envelope.data.text != "secret":
            data = msgspec.structs.replace(message.envelope.data, number=message.envelope.data.number + 1)
            envelope = msgspec.structs.replace(message.envelope, data=data)
            await proceed(msgspec.structs.replace(message, envelope=envelope))

    bus = await dial(server, "watched", middleware=[watch])
    async with bus.listen(namespace.live) as received:
        await bus.publish(namespace.live, namespace.Note(text="secret"), who="me")
        await bus.publish(namespace.live, namespace.Note(text="open"), who="me")
        assert (await anext(received)).data == namespace.Note(text="open", number=2)
    assert seen == [("out", "secret"), ("out", "open"), ("in", "open")]
