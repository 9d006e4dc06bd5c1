"""Many viewers of one conversation, over server-sent events and WebSockets."""

from contextlib import AsyncExitStack

import anyio
import pytest

from tests.support.socket_client import SocketClient, open_socket, shown

from .conftest import Environment
from .fake_monitor import FakeTurn
from .sse_client import Event, events_in, text_of

pytestmark = pytest.mark.anyio

PIECES = [f"piece {number}, with an umlaut: ä. " for number in range(60)]
SOCKETS, STREAMS = 10, 10


async def test_twenty_viewers_see_the_same_text_without_a_gap(env: Environment) -> None:
    """15: viewers that come before, in the middle of and after an answer see the same text, over SSE and WebSocket."""
    half, go_on = anyio.Event(), anyio.Event()

    async def script(turn: FakeTurn) -> None:
        await turn.begin()
        offset = 0
        for number, piece in enumerate(PIECES):
            if number == len(PIECES) // 2:
                half.set()
                await go_on.wait()
            await turn.say(piece, offset=offset)
            offset += len(piece)
        await turn.end("".join(PIECES))

    env.monitor.script = script
    read: list[list[Event]] = []

    async def read_stream(turn: str) -> None:
        async with env.http.stream("GET", f"/api/turns/{turn}/events") as response:
            assert response.status_code == 200
            read.append([event async for event in events_in(response)])

    async def watch(stack: AsyncExitStack, turn: str) -> SocketClient:
        client = await stack.enter_async_context(open_socket(env.url, env.token))
        await client.done("subscribe", turn=turn)
        return client

    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        sender = await stack.enter_async_context(open_socket(env.url, env.token))
        sent = (await sender.done("chat", content="begin")).payload
        clients = [await watch(stack, sent.turn) for _ in range(SOCKETS // 2)]
        for _ in range(STREAMS // 2):
            tasks.start_soon(read_stream, sent.turn)
        with anyio.fail_after(60):
            await half.wait()
        clients += [await watch(stack, sent.turn) for _ in range(SOCKETS // 2)]
        for _ in range(STREAMS // 2):
            tasks.start_soon(read_stream, sent.turn)
        go_on.set()
        with anyio.fail_after(120):
            texts = [shown(await client.until_end(sent.turn)) for client in clients]
    texts += [text_of(events) for events in read]
    await read_stream(sent.turn)
    texts.append(text_of(read[-1]))
    assert len(texts) == SOCKETS + STREAMS + 1 and set(texts) == {"".join(PIECES)}
