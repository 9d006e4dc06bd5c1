"""``python -m benchmarks.websockets``: what an idle socket at ``/ws`` takes, and how late the viewers of a turn see it.

A platform of real processes. The memory is that of the gateway's process, before and after the sockets are open. The
delay of a piece of text is the time from the moment when the feed's item was published, as a bare subscriber of the bus
sees it on this machine, to its arrival at each viewer's socket.
"""

import argparse
import json
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import perf_counter

import anyio
import psutil

from benchmarks.figures import milliseconds, percentile, progress, table
from benchmarks.machine import describe_machine
from tests.support.processes import ProcessPlatform, process_platform
from tests.support.socket_client import SocketClient, open_socket
from trunkline.contracts.turns.feed_messages import FeedItem, TextDelta
from trunkline.contracts.turns.subjects import FEED
from trunkline.testing.scripted_provider import provider_process
from trunkline.workers.gateway.socket.event_envelopes import ChatEnvelope, TurnEndedEnvelope
from trunkline_bus import ReceivedMessage

WORKERS = ("gateway", "monitor", "tools", "memory")
SETTLE_SECONDS = 3.0
WARM_UP = 50
"""Sockets that are opened and closed first, so that what is made once counts for no socket."""


async def idle_kilobytes(running: ProcessPlatform, count: int, *, subscribed: bool) -> float:
    """The kilobytes of the gateway's memory for each of so many idle sockets. Memory that a process has freed is used
    again, so this is measured first, and once for a platform."""
    await _opened(running, WARM_UP, subscribed=subscribed)
    before = _memory(running)
    async with AsyncExitStack() as stack:
        for number in range(count):
            await _open(running, stack, subscribed=subscribed)
            progress(f"{number + 1} sockets")
        await anyio.sleep(SETTLE_SECONDS)
        return (_memory(running) - before) / count / 1000


async def _opened(running: ProcessPlatform, count: int, *, subscribed: bool) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await _open(running, stack, subscribed=subscribed)
    await anyio.sleep(SETTLE_SECONDS)


async def _open(running: ProcessPlatform, stack: AsyncExitStack, *, subscribed: bool) -> SocketClient:
    client = await stack.enter_async_context(open_socket(running.url, running.token))
    if subscribed:
        await client.done("subscribe")
    return client


def _memory(running: ProcessPlatform) -> int:
    return int(psutil.Process(running.processes["gateway"].pid).memory_info().rss)


async def fan_out_delays(running: ProcessPlatform, viewers: int, turns: int) -> list[float]:
    """The seconds from each piece of text on the bus to each viewer."""
    published: dict[tuple[str, int, int], float] = {}

    async def note(received: ReceivedMessage[FeedItem]) -> None:
        event = received.data.event
        if isinstance(event, TextDelta):
            published[received.data.turn, event.step, event.offset] = perf_counter()

    subscription = await running.bus.subscribe(FEED, note, limit=1)
    arrived: list[tuple[tuple[str, int, int], float]] = []
    async with AsyncExitStack() as stack:
        clients = [await _open(running, stack, subscribed=False) for _ in range(viewers)]
        first = (await clients[0].done("chat", content="say:begin")).payload
        for client in clients:
            await client.done("subscribe", conversation=first.conversation, after={first.turn: ""})
        async with anyio.create_task_group() as tasks:
            for client in clients:
                tasks.start_soon(_read, client, turns, arrived)
            for number in range(turns):
                path = {"content": f"slow:100:10 ;; say:{number}", "conversation": first.conversation}
                async with open_socket(running.url, running.token) as sender:
                    sent = (await sender.done("chat", **path)).payload
                    await sender.done("subscribe", turn=sent.turn)
                    await sender.until_end(sent.turn)
    await subscription.aclose()
    return [at - published[key] for key, at in arrived if key in published]


async def _read(client: SocketClient, turns: int, arrived: list[tuple[tuple[str, int, int], float]]) -> None:
    """Read the events of the first turn and of so many more."""
    ended = 0
    while ended <= turns:
        envelope = await client.receive()
        at = perf_counter()
        if isinstance(envelope, TurnEndedEnvelope):
            ended += 1
        elif isinstance(envelope, ChatEnvelope):
            payload = envelope.payload
            arrived.append(((payload.turn, payload.step, payload.offset), at))


async def measure(sockets: int, viewers: int, turns: int, *, subscribed: bool) -> dict[str, float]:
    """Everything, on one platform."""
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
            "gateway.max_sockets": sockets + WARM_UP + viewers,
        }
        async with process_platform(Path(folder), config=config, workers=WORKERS) as running:
            idle = await idle_kilobytes(running, sockets, subscribed=subscribed)
            delays = await fan_out_delays(running, viewers, turns)
    return {
        "idle_kb": idle,
        "fan_out_p50": percentile(delays, 0.5),
        "fan_out_p95": percentile(delays, 0.95),
        "fan_out_max": max(delays),
        "pieces": float(len(delays)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=1_000)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--subscribed", action="store_true", help="the idle sockets watch everything")
    given = parser.parse_args()
    found = anyio.run(
        partial(measure, given.sockets, given.viewers, given.turns, subscribed=given.subscribed)
    )
    progress("")
    if given.json:
        print(json.dumps(found))
        return
    rows = [
        (f"an idle socket, of {given.sockets}", f"{found['idle_kb']:.1f} kB", "20 kB"),
        (
            f"a piece of text to {given.viewers} viewers, median",
            f"{milliseconds(found['fan_out_p50'])} ms",
            "",
        ),
        ("95 of 100", f"{milliseconds(found['fan_out_p95'])} ms", "100 ms"),
        ("the slowest", f"{milliseconds(found['fan_out_max'])} ms", ""),
    ]
    print(describe_machine())
    print(table(("what", "measured", "limit"), rows))


if __name__ == "__main__":
    main()
