"""Asking and answering."""

import json
import signal
import time
from typing import Any

import anyio
import pytest
from opentelemetry import trace

from trunkline_bus import (
    Bus,
    BusError,
    CallTimeout,
    NoResponders,
    Refusal,
    RemoteFault,
    Scope,
    current_traceparent,
    remote_parent,
    service,
)

pytestmark = pytest.mark.anyio


async def _echo(request: Any) -> Any:
    return request.data


async def test_a_call_is_answered(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The handler receives payload, keys and scope; the reply is typed."""
    seen: list[Any] = []

    async def handler(request: Any) -> Any:
        seen.append(request)
        return namespace.Note(text=request.data.text.upper())

    async with service(peer, name="upper", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        reply = await bus.call(namespace.ask, namespace.Note(text="hi"), scope=Scope(turn="t1"), who="me")
    assert reply == namespace.Note(text="HI")
    assert (seen[0].keys, seen[0].envelope.turn) == ({"who": "me"}, "t1")


async def test_many_calls_run_at_once(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Requests do not wait for each other, up to the limit."""
    together = anyio.Event()
    running_now: set[int] = set()

    async def handler(request: Any) -> Any:
        running_now.add(request.data.number)
        if len(running_now) == 20:
            together.set()
        await together.wait()
        return request.data

    replies: list[int] = []

    async def ask(number: int) -> None:
        replies.append((await bus.call(namespace.ask, namespace.Note(number=number), who="me")).number)

    async with service(peer, name="meet", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, number)
    assert sorted(replies) == list(range(20))


async def test_a_request_without_a_listener_fails_as_unavailable(bus: Bus, namespace: Any) -> None:
    """NoResponders is raised after the timeout, never CallTimeout: no service received the request."""
    with anyio.fail_after(60), pytest.raises(NoResponders):
        await bus.call(namespace.ask, namespace.Note(), timeout=0.3, who="me")


async def test_a_busy_caller_gets_the_reason_of_the_last_attempt(bus: Bus, namespace: Any) -> None:
    """The event loop stands still beyond the deadline while the call pauses between two attempts."""

    async def block() -> None:
        await anyio.sleep(0.7)  # pauses are long by then, so that no attempt is on its way
        time.sleep(1.2)  # noqa: ASYNC251 - the caller's process is busy

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(block)
        with pytest.raises(NoResponders):
            await bus.call(namespace.ask, namespace.Note(), timeout=1.5, who="me")


async def test_an_optional_service_is_not_waited_for(bus: Bus, namespace: Any) -> None:
    """With ``absent`` the caller does not wait for an answer on a subject without a service."""
    with anyio.fail_after(60), pytest.raises(NoResponders):
        await bus.call(namespace.ask, namespace.Note(), timeout=600, absent=0.2, who="me")


async def test_a_call_waits_for_a_service_that_is_just_starting(
    bus: Bus, peer: Bus, namespace: Any, eventually: Any
) -> None:
    """Within its timeout the call is repeated until a service subscribes."""
    replies: list[Any] = []

    async def ask() -> None:
        replies.append(await bus.call(namespace.ask, namespace.Note(text="early"), who="me"))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.sleep(0.1)
        async with service(peer, name="late", version="1.0.0") as running:
            await running.add(namespace.ask, _echo)
            await eventually(lambda: replies)
    assert replies[0].text == "early"


async def test_a_service_that_sends_nothing_times_out(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The caller gets CallTimeout, because a service may have received the request."""
    release = anyio.Event()

    async def handler(request: Any) -> Any:
        await release.wait()
        return request.data

    async with service(peer, name="silent", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        with pytest.raises(CallTimeout):
            await bus.call(namespace.ask, namespace.Note(), timeout=0.2, who="me")
        release.set()


async def test_a_refusal_arrives_unchanged(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Code and sentence of the Refusal are those of the RemoteFault."""

    async def handler(request: Any) -> Any:
        raise Refusal("no_such_block", "There is no block of that name.")

    async with service(peer, name="strict", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        with pytest.raises(RemoteFault) as caught:
            await bus.call(namespace.ask, namespace.Note(), who="me")
    assert (caught.value.code, caught.value.message) == ("no_such_block", "There is no block of that name.")


async def test_a_crash_shows_a_reference_and_no_detail(
    bus: Bus, peer: Bus, namespace: Any, caplog: Any
) -> None:
    """The caller gets the code internal and a reference; the log has the reference and the exception."""

    async def handler(request: Any) -> Any:
        raise ValueError("the password is sesame")

    async with service(peer, name="brittle", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        with pytest.raises(RemoteFault) as caught:
            await bus.call(namespace.ask, namespace.Note(), who="me")
    assert caught.value.code == "internal"
    assert "sesame" not in str(caught.value)
    assert caught.value.detail in caplog.text
    assert "sesame" in caplog.text


async def _discover(bus: Bus, subject: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    inbox = bus.link.open_inbox(lambda msg: found.append(json.loads(msg.data)) if msg.data else None)
    await bus.link.publish(subject, b"", reply=inbox)
    with anyio.move_on_after(0.3):
        await anyio.sleep_forever()
    bus.link.close_inbox(inbox)
    return found


async def test_discovery_names_every_instance(bus: Bus, peer: Bus, namespace: Any) -> None:
    """$SRV.PING, INFO and STATS answer as ADR-32 says, for all, by name and by id."""
    name = f"svc-{namespace.prefix}"
    async with (
        service(bus, name=name, version="1.2.3") as one,
        service(peer, name=name, version="1.2.3", description="d") as two,
    ):
        await two.add(namespace.ask, _echo)
        await bus.call(namespace.ask, namespace.Note(), who="me")
        pings = [ping for ping in await _discover(bus, "$SRV.PING") if ping["name"] == name]
        assert {ping["id"] for ping in pings} == {one.id, two.id}
        assert {ping["type"] for ping in pings} == {"io.nats.micro.v1.ping_response"}
        assert len(await _discover(bus, f"$SRV.PING.{name}")) == 2
        [info] = await _discover(bus, f"$SRV.INFO.{name}.{two.id}")
        assert info["version"] == "1.2.3"
        [endpoint] = info["endpoints"]
        assert (endpoint["name"], endpoint["subject"]) == ("ask", f"{namespace.prefix}.cmd.*.ask")
        [stats] = await _discover(bus, f"$SRV.STATS.{name}.{two.id}")
        assert (stats["endpoints"][0]["num_requests"], stats["endpoints"][0]["num_errors"]) == (1, 0)


async def test_instances_share_the_requests(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Each request is handled by one member of the queue group."""
    handled: list[str] = []

    def handler(who: str) -> Any:
        async def answer(request: Any) -> Any:
            handled.append(who)
            return request.data

        return answer

    async with (
        service(bus, name="pool", version="1.0.0") as a,
        service(peer, name="pool", version="1.0.0") as b,
    ):
        await a.add(namespace.ask, handler("a"))
        await b.add(namespace.ask, handler("b"))
        for number in range(60):
            await bus.call(namespace.ask, namespace.Note(number=number), who="me")
    assert len(handled) == 60
    assert set(handled) == {"a", "b"}


async def test_a_closing_service_finishes_its_requests(bus: Bus, peer: Bus, namespace: Any) -> None:
    """A request taken before the end is answered."""
    taken = anyio.Event()
    replies: list[Any] = []

    async def handler(request: Any) -> Any:
        taken.set()
        await anyio.sleep(0.3)
        return request.data

    async def ask() -> None:
        replies.append(await bus.call(namespace.ask, namespace.Note(text="x"), who="me"))

    async with anyio.create_task_group() as group, service(peer, name="closing", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        group.start_soon(ask)
        await taken.wait()
    assert replies[0].text == "x"


async def test_a_handler_runs_in_the_callers_trace(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The current context of a handler has the trace id of the caller, with and without a span of its own."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    seen: list[str | None] = []

    async def handler(request: Any) -> Any:
        seen.append(current_traceparent())
        return request.data

    async with service(peer, name="traced", version="1.0.0") as running:
        await running.add(namespace.ask, handler)
        with remote_parent(parent):
            await bus.call(namespace.ask, namespace.Note(), who="me")
        await bus.call(namespace.ask, namespace.Note(), who="me")
    assert seen[0] is not None
    assert seen[0].split("-")[1] == parent.split("-")[1]
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_replies_stream_in_order_to_the_end(bus: Bus, peer: Bus, namespace: Any) -> None:
    """All replies of an async generator arrive, then the iteration ends."""

    async def count(request: Any) -> Any:
        for number in range(request.data.number):
            yield namespace.Note(number=number)

    async with service(peer, name="count", version="1.0.0") as running:
        await running.add(namespace.flow, count)
        async with bus.call_streaming(namespace.flow, namespace.Note(number=500), who="me") as replies:
            assert [reply.number async for reply in replies] == list(range(500))
        async with bus.call_streaming(namespace.flow, namespace.Note(number=0), who="me") as replies:
            assert [reply async for reply in replies] == []


async def test_leaving_a_stream_early_stops_the_handler(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The handler computes no replies without a reader."""
    ended = anyio.Event()

    async def endless(request: Any) -> Any:
        try:
            while True:
                yield namespace.Note()
                await anyio.sleep(0.01)
        finally:
            ended.set()

    async with service(peer, name="endless", version="1.0.0") as running:
        await running.add(namespace.flow, endless)
        async with bus.call_streaming(namespace.flow, namespace.Note(), who="me") as replies:
            await anext(replies)
        with anyio.fail_after(60):
            await ended.wait()


async def test_a_fault_in_mid_stream_arrives(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Earlier replies are delivered, then RemoteFault is raised."""

    async def breaking(request: Any) -> Any:
        yield namespace.Note(number=1)
        raise Refusal("enough", "That was all.")

    async with service(peer, name="breaking", version="1.0.0") as running:
        await running.add(namespace.flow, breaking)
        async with bus.call_streaming(namespace.flow, namespace.Note(), who="me") as replies:
            assert (await anext(replies)).number == 1
            with pytest.raises(RemoteFault, match="enough"):
                await anext(replies)


async def test_a_slow_stream_with_heartbeats_does_not_time_out(bus: Bus, peer: Bus, namespace: Any) -> None:
    """Signs of life keep the call open while the handler thinks longer than idle_timeout."""

    async def thinking(request: Any) -> Any:
        await anyio.sleep(4)
        yield namespace.Note(text="done")

    async with service(peer, name="thinking", version="1.0.0") as running:
        await running.add(namespace.flow, thinking)
        async with bus.call_streaming(namespace.flow, namespace.Note(), idle_timeout=3, who="me") as replies:
            assert (await anext(replies)).text == "done"


async def test_a_stream_request_without_a_server_fails_at_once(bus: Bus, namespace: Any) -> None:
    """NoResponders without waiting for the idle timeout."""
    with anyio.fail_after(60), pytest.raises(NoResponders):
        async with bus.call_streaming(namespace.flow, namespace.Note(), idle_timeout=90, who="me"):
            pass


async def test_a_single_reply_endpoint_cannot_be_streamed(bus: Bus, peer: Bus, namespace: Any) -> None:
    """The error says which function to use."""
    async with service(peer, name="single", version="1.0.0") as running:
        await running.add(namespace.ask, _echo)
        with pytest.raises(BusError, match="use call"):
            async with bus.call_streaming(namespace.ask, namespace.Note(), who="me"):
                pass


_DYING = """
import anyio, sys
from trunkline_bus import *
class Note(Payload, frozen=True, kw_only=True, tag="test.note.v1"):
    text: str = ""
    number: int = 0
url, user, password, prefix = sys.argv[1:]
flow = Endpoint("flow", Subject(prefix + ".cmd.{who}.flow"), Note, Note, streaming=True)
async def endless(request):
    yield Note(number=1)
    await anyio.sleep_forever()
async def main():
    async with connect(BusSettings(url=url, user=user, password=password)) as bus:
        async with service(bus, name="dying", version="1.0.0") as running:
            await running.add(flow, endless)
            print("ready", flush=True)
            await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.kill
async def test_a_stream_of_a_killed_service_times_out(
    server: Any, bus: Bus, namespace: Any, child: Any
) -> None:
    """After SIGKILL of the serving process the reader gets CallTimeout once it was silent for idle_timeout."""
    process = child(_DYING, server.url, server.user, server.password, namespace.prefix)
    assert await anyio.to_thread.run_sync(process.stdout.readline) == "ready\n"
    async with bus.call_streaming(namespace.flow, namespace.Note(), idle_timeout=4.0, who="me") as replies:
        assert (await anext(replies)).number == 1
        process.send_signal(signal.SIGKILL)
        with anyio.fail_after(60), pytest.raises(CallTimeout):
            await anext(replies)
