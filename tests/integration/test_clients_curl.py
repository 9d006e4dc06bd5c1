"""``curl`` as a client of the Gateway API: events as text, and coming back in mid-turn."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from trunkline.testing.platform import Platform, platform
from trunkline.testing.script import words
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@dataclass
class Event:
    name: str
    id: str
    data: str


def events_in(text: str) -> list[Event]:
    """Return the complete events of a text; an incomplete one at the end is dropped, as in a browser."""
    found: list[Event] = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            found.append(Event(fields["event"], fields["id"], fields["data"]))
    return found


def text_of(events: list[Event]) -> str:

    return "".join(json.loads(event.data)["content"] for event in events if event.name == "text-delta")


class Curl:
    """Runs curl with the token, which goes by a file and not by the command line."""

    def __init__(self, running: Platform, provider: ScriptedProvider, folder: Path) -> None:
        self.provider = provider
        self.url = running.url
        self.folder = folder
        self._config = folder / "curlrc"
        self._config.write_text(f'header = "Authorization: Bearer {running.token}"\nsilent\nno-buffer\n')

    def command(self, path: str, *options: str) -> list[str]:
        return ["curl", "-K", str(self._config), *options, f"{self.url}{path}"]

    async def run(self, path: str, *options: str) -> str:
        done = await anyio.run_process(self.command(path, *options), check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def said(self, content: str) -> tuple[str, ...]:
        return ("-H", "Content-Type: application/json", "--data", f'{{"content": "{content}"}}')


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Platform, ScriptedProvider]]:
    """One platform for all tests of the module: each has conversations of its own."""
    with ScriptedProvider() as provider:
        async with platform(config=provider.settings) as running:
            yield running, provider


@pytest.fixture
def curl(shared: tuple[Platform, ScriptedProvider], tmp_path: Path) -> Curl:
    """Runs curl in a folder of the test, before a provider that has seen nothing."""
    running, provider = shared
    provider.forget()
    return Curl(running, provider, tmp_path)


async def test_a_conversation(curl: Curl) -> None:
    """Headers name the conversation and the turn; the events end with ``done``; the list and the history are JSON."""
    said = await curl.run("/conversations/messages", "-i", *curl.said("say:hello there"))
    head, _, body = said.replace("\r\n", "\n").partition("\n\n")
    headers = dict(line.split(": ", 1) for line in head.lower().split("\n")[1:])
    assert head.startswith("HTTP/1.1 200") and headers["content-type"].startswith("text/event-stream")
    events = events_in(body)
    assert text_of(events) == "hello there" and events[-1].name == "done"
    listed = await curl.run("/conversations")
    id = head.split("x-conversation-id: ")[1].split("\n")[0]
    assert id in listed and "hello there" in await curl.run(f"/conversations/{id}")


async def test_a_reconnected_stream_has_no_gap_and_no_repeat(curl: Curl) -> None:
    """The connection is cut after some events, again and again; each time curl reconnects with its last id. All text
    is there once, in order, and ``done`` is sent once."""
    turn, events = await begun(
        curl, 'slow:60:25 ;; call:list_directory {\\"path\\": \\".\\"} ;; slow:20:15', 5
    )
    returns = 0
    while events[-1].name not in ("done", "error"):
        returns += 1
        options = ("-H", f"Last-Event-ID: {events[-1].id}")
        events += await cut_after(curl, curl.command(f"/api/turns/{turn}/events", *options), 7)
    assert returns >= 1
    assert text_of(events) == words(60) + words(20)
    assert [event.name for event in events].count("done") == 1
    assert len({event.id for event in events}) == len(events)
    again = events_in(await curl.run(f"/api/turns/{turn}/events?from={events[4].id}"))
    assert text_of(events[:5]) + text_of(again) == words(60) + words(20)


async def test_sending_again_attaches_to_the_turn(curl: Curl) -> None:
    """A client that lost the connection before it saw an id repeats its request with the same ``Idempotency-Key``: it
    gets the same turn, from the beginning, and the model is asked once."""
    options = ("-H", "Idempotency-Key: once", "-D", str(curl.folder / "head"), *curl.said("slow:20:10"))
    first = await cut_after(curl, curl.command("/conversations/messages", *options), 3)
    head = (curl.folder / "head").read_text().lower()
    second = events_in(await curl.run("/conversations/messages", *options))
    assert [event.id for event in second[:3]] == [event.id for event in first[:3]]
    assert text_of(second) == words(20)
    again = (curl.folder / "head").read_text().lower()
    assert turn_in(again) == turn_in(head)
    assert len(curl.provider.answer_requests) == 1


async def test_the_program_fails_with_the_status(curl: Curl) -> None:
    """``curl --fail`` ends with 22 for a refusal, and the body is the code, the sentence and what to send."""
    command = ["curl", "-s", "--fail-with-body", f"{curl.url}/conversations"]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 22
    body = json.loads(done.stdout)
    assert (body["code"], body["message"]) == ("unauthorized", "A valid credential is required.")
    assert "in the header Authorization, as Bearer TOKEN" in body["metadata"]["reason"]


async def begun(curl: Curl, content: str, count: int) -> tuple[str, list[Event]]:
    """Send a message and cut the connection after some events; the turn's id and the events."""
    head = curl.folder / "head"
    command = curl.command("/conversations/messages", "-D", str(head), *curl.said(content))
    events = await cut_after(curl, command, count)
    return turn_in(head.read_text().lower()), events


def turn_in(head: str) -> str:
    return head.split("x-turn-id: ")[1].split()[0]


async def cut_after(curl: Curl, command: list[str], count: int) -> list[Event]:
    """Run until this many events have come, then kill: at least so many, unless the stream ended."""
    text = b""
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        with anyio.fail_after(60):
            while len(events_in(text.decode(errors="ignore"))) < count:
                try:
                    text += await process.stdout.receive(4096)
                except anyio.EndOfStream:
                    break
        if process.returncode is None:
            process.kill()
    return events_in(text.decode(errors="ignore"))
