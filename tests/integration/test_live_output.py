"""The output of a running program is shown as it arrives, over the bus, the WebSocket and SSE. It never holds up the
turn or other viewers, and it is not recorded.
"""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from tests.support.socket_client import SocketClient, open_socket
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import TextDelta, ToolEnded, ToolProgressed
from trunkline.contracts.turns.subjects import FEED, JOURNAL
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.gateway.socket.event_envelopes import ToolProgressEnvelope, ToolResultEnvelope
from trunkline.workers.tools.live_output import MAX_PIECE

from .approval_helpers import asking

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

WAITING = "echo first line; until [ -e go-{0} ]; do sleep 0.05; done; echo last line"
"""Prints a line, and another one when the file exists."""

FLOOD = "yes 0123456789abcdef | head -c 100000000; echo; until [ -e go-{0} ]; do sleep 0.05; done"
"""Prints 100 MB, and ends when the file exists."""


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    """A platform where programs run without approval."""
    with ScriptedProvider() as provider:
        free = {"permissions.allow_shell": True, "permissions.approvals": "none"}
        async with platform(config={**asking(provider.url), **free}) as one:
            yield one


async def begin(running: Platform, script: str) -> MessageAccepted:
    """Send a message for which the agent runs the script."""
    call = json.dumps({"command": script})
    return await running.send(f"call:execute_command {call} ;; say:Done.")


def let_go(running: Platform, name: str) -> None:
    """Create the file for which the program of a test waits."""
    Path(running.home.workspace("main"), f"go-{name}").touch()


async def watch(client: SocketClient, accepted: MessageAccepted) -> None:
    await client.done("subscribe", turn=accepted.turn)


async def output_so_far(client: SocketClient, wanted: str) -> str:
    """Read until the live output has this text, and return all of it."""
    while wanted not in (text := live_text(client)):
        await client.receive()
    return text


def live_text(client: SocketClient) -> str:
    """The live output that the client has received. Each piece follows the one before or a gap, and is bounded."""
    text, end = "", 0
    for envelope in client.received:
        if isinstance(envelope, ToolProgressEnvelope):
            piece = envelope.payload
            assert piece.offset >= end and len(piece.output) <= MAX_PIECE
            text, end = text + piece.output, piece.offset + len(piece.output)
    return text


async def test_output_is_shown_while_the_program_runs(running: Platform) -> None:
    """Two sockets and a stream of events show the first line while the program waits. One joined late. The result is
    whole, and the journal and the conversation have nothing of the live output."""
    accepted = await begin(running, WAITING.format("shown"))
    async with (
        open_socket(running.url, running.token) as early,
        open_socket(running.url, running.token) as late,
    ):
        await watch(early, accepted)
        assert await output_so_far(early, "first line") == "first line\n"
        await watch(late, accepted)
        assert await output_so_far(late, "first line") == "first line\n"
        assert (await first_event(running, accepted, "tool-progress"))["output"] == "first line\n"
        let_go(running, "shown")
        for client in (early, late):
            events = await client.until_end(accepted.turn)
            (result,) = [one for one in events if isinstance(one, ToolResultEnvelope)]
            assert "first line\nlast line" in result.payload.output
    answer = await running.answer(accepted)
    assert any(isinstance(one, ToolProgressed) for one in answer.events)
    assert answer.text == "Done."
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    journal = [msgspec.json.encode(one.data).decode() async for one in running.bus.history(JOURNAL, **keys)]
    assert sum("first line\\nlast line" in entry for entry in journal) == 1
    assert "tool.progressed" not in "".join(journal)


async def first_event(running: Platform, accepted: MessageAccepted, name: str) -> dict[str, Any]:
    """The data of the first event with this name in the turn's stream of events."""
    address = f"{running.url}/api/turns/{accepted.turn}/events"
    headers = {"authorization": f"Bearer {running.token}"}
    async with (
        httpx.AsyncClient(timeout=60) as client,
        client.stream("GET", address, headers=headers) as response,
    ):
        assert response.status_code == 200, address
        found = False
        async for line in response.aiter_lines():
            if found and line.startswith("data: "):
                return dict(json.loads(line.removeprefix("data: ")))
            found = found or line == f"event: {name}"
    raise AssertionError(f"no event {name}")


async def test_a_flood_of_output_holds_up_nobody(running: Platform) -> None:
    """A program prints 100 MB. Its feed has only pieces of bounded size, and few of them; a
    viewer who reads nothing and another conversation are served meanwhile; and the result comes as soon as it ends."""
    accepted = await begin(running, FLOOD.format("flood"))
    async with (
        open_socket(running.url, running.token) as viewer,
        open_socket(running.url, running.token) as idle,
    ):
        await watch(viewer, accepted)
        await watch(idle, accepted)
        await output_so_far(viewer, "0123456789abcdef")
        assert (await running.say("say:I am served.")).text == "I am served."
        let_go(running, "flood")
        await viewer.until_end(accepted.turn)
        await idle.until_end(accepted.turn)
    answer = await running.answer(accepted)
    shown = sum(len(one.output) for one in answer.events if isinstance(one, ToolProgressed))
    assert 0 < shown < 500_000
    (ended,) = [one for one in answer.events if isinstance(one, ToolEnded)]
    assert "exit code 0" in ended.output
    assert answer.text == "Done."


async def test_a_reader_that_returns_gets_what_it_missed(running: Platform) -> None:
    """A reader that resumes after a piece of output receives the events after it, and that piece not again."""
    accepted = await begin(running, WAITING.format("resumed"))
    watch = running.gateway.watch(accepted.conversation, accepted.turn)
    with anyio.fail_after(60):
        async for event in watch:
            if isinstance(event, ToolProgressed):
                break
    let_go(running, "resumed")
    await running.answer(accepted)
    rest = [
        event
        async for event in running.gateway.watch(accepted.conversation, accepted.turn, after=watch.position)
    ]
    assert not any(isinstance(one, ToolProgressed) and "first line" in one.output for one in rest)
    assert [one.text for one in rest if isinstance(one, TextDelta)] == ["Done."]
    stored = [
        one.data.index
        async for one in running.bus.history(FEED, conversation=accepted.conversation, turn=accepted.turn)
    ]
    assert sorted(set(stored)) == list(range(max(stored) + 1))
