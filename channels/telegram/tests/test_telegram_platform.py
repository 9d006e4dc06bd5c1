"""Telegram beside other channels, on one platform: who gets which answer, and who may decide."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc
import httpx
import pytest

import trunkline
from tests.support.socket_client import open_socket, shown
from trunkline.api.testing import Platform, platform, wait_until
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.gateway.socket.event_envelopes import ApprovalSettledEnvelope

from .bot_api_server import OWNER, TOKEN, BotApiServer, bot_api_server

pytestmark = pytest.mark.anyio


class Models:
    """A plugin with a model that does what it is told."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@pytest.fixture(scope="module")
async def both(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Platform, BotApiServer]]:
    """A platform with the Telegram channel and HTTP, and Telegram."""
    home: Path = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        async with bot_api_server() as server:
            section: dict[str, object] = {
                "owners": [OWNER],
                "api_url": server.url,
                "edit_seconds": 0.05,
                "poll_seconds": 5,
            }
            config = {f"channels.telegram.{key}": value for key, value in section.items()}
            config |= {"channels.enabled": ["telegram"], "runtime.provider_adapter": "scripted"}
            config |= {"permissions.approvals": "some"}
            async with platform(home, plugins=[Models()], config=config) as running:
                await wait_until(lambda: "getUpdates" in server.calls)
                yield running, server


def client(running: Platform) -> httpx.AsyncClient:
    """The HTTP client of the owner."""
    headers = {"authorization": f"Bearer {running.token}"}
    return httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60)


async def test_MB_T11_an_approval_asked_on_telegram_is_decided_by_http(
    both: tuple[Platform, BotApiServer],
) -> None:
    """A call of a turn from Telegram is visible to every client; the first decision counts, and Telegram shows it."""
    running, server = both
    server.say('call:write_file {"path": "t11.md", "content": "from the phone"}')
    await wait_until(lambda: any(one.buttons for one in server.shown()))
    asked = next(one for one in server.shown() if one.buttons)
    assert "t11.md" in asked.text and "from the phone" in asked.text
    async with client(running) as http:
        (waiting,) = (await http.get("/api/approvals")).json()["approvals"]
        assert waiting["channel"] == "telegram" and asked.buttons["Deny"] == f"deny {waiting['id']}"
        place = f"/api/turns/{waiting['turn']}/calls/{waiting['call']}/decision"
        decided = await http.post(place, json={"hash": waiting["hash"], "allow": True})
        assert decided.is_success, decided.text
    await wait_until(lambda: not asked.buttons and "Allowed by" in asked.text)
    press = server.press(f"deny {waiting['id']}")
    await wait_until(lambda: press in server.pressed)
    assert "No pending approval" in server.pressed[press]
    await wait_until(lambda: any("Created t11.md" in text for text in server.seen()))


async def test_a_picture_reaches_the_model_and_a_file_comes_back(both: tuple[Platform, BotApiServer]) -> None:
    """A picture is an attachment of the conversation in memory; what is no picture or text is refused with a sentence;
    a file of the workspace arrives as a document, whole."""
    running, server = both
    picture = b"\x89PNG\r\n\x1a\n" + b"picture" * 50_000
    server.send_photo(picture, caption="say:I see a picture.")
    await wait_until(lambda: any(text.startswith("I see a picture.") for text in server.seen()))
    (kept,) = running.home.memory.glob("blocks/main/conversations/*/*.files/*.png")
    assert kept.read_bytes() == picture
    server.send_file("document", b"PK\x03\x04\xff\xfe", name="all.zip", media_type="application/zip")
    await wait_until(lambda: any("PNG, JPEG, GIF or WebP" in text for text in server.seen()))
    workspace = running.home.workspace("main")
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "table.csv").write_bytes(b"a,b\n" * 60_000)
    server.say('call:send_file {"path": "table.csv"}')
    await wait_until(lambda: "document table.csv" in server.seen())
    (sent,) = [one for one in server.shown() if one.file == "document table.csv"]
    assert sent.data == b"a,b\n" * 60_000


async def test_MB_T15_a_message_is_answered_where_it_was_sent(both: tuple[Platform, BotApiServer]) -> None:
    """A message over HTTP is answered there, and a notice to Telegram arrives there alone."""
    running, server = both
    before = len(server.shown())
    async with client(running) as http:
        answer = await http.post("/v1/chat/completions", json=_completion("say:over HTTP"))
        assert "over HTTP" in answer.text
        server.say("say:on the phone")
        await wait_until(lambda: "on the phone" in server.seen())
        assert len(server.shown()) == before + 1
        wanted = 'call:send_channel_message {"channel": "telegram", "content": "the beans are ripe"}'
        await http.post("/v1/chat/completions", json=_completion(wanted))
        await wait_until(lambda: any(one.buttons for one in server.shown()))
        asked = next(one for one in server.shown() if one.buttons)
        server.press(asked.buttons["Allow once"])
        notice = "From the agent of block main:\nthe beans are ripe"
        await wait_until(lambda: notice in server.seen())
    assert server.seen().count(notice) == 1
    assert len(server.shown()) == before + 3  # the answer on the phone, the question, and the notice


def _completion(content: str) -> dict[str, object]:
    return {"model": "main", "messages": [{"role": "user", "content": content}]}


TRUNKLINE = (str(Path(sys.executable).with_name("trunkline")),)
"""The program."""


def environ(running: Platform) -> dict[str, str]:
    """The environment of a command that uses this platform."""
    bus = running.instance.bus
    return {
        **os.environ, "TRUNKLINE_HOME": str(running.home.path), "TRUNKLINE_BUS__URL": bus.url,
        "TRUNKLINE_BUS__USER": bus.user or "", "TRUNKLINE_BUS__PASSWORD": bus.password or "",
        "TRUNKLINE_CHANNELS__ENABLED": '["telegram"]',
    }  # fmt: skip


@dataclass
class Terminal:
    """``trunkline attach`` in a process of its own, with what it printed."""

    process: anyio.abc.Process
    text: str = ""

    async def read(self) -> None:
        """Keep what is printed, on both outputs."""
        assert self.process.stdout is not None
        async for piece in self.process.stdout:
            self.text += piece.decode()


@asynccontextmanager
async def terminal(running: Platform, conversation: str) -> AsyncIterator[Terminal]:
    """A terminal that is attached to the conversation."""
    command = [*TRUNKLINE, "attach", conversation]
    async with await anyio.open_process(
        command, stdin=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ(running)
    ) as process:
        shown = Terminal(process)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shown.read)
            yield shown
            tasks.cancel_scope.cancel()
            process.kill()


async def test_MB_F22_every_viewer_of_a_conversation_sees_the_same(
    both: tuple[Platform, BotApiServer],
) -> None:
    """What is said on one channel is shown once and whole over SSE, WebSocket, in the terminal and in Telegram. A call
    that is asked about on one is decided on another; of two decisions the first counts, and all are told.
    """
    running, server = both
    begun = await running.say("say:the beginning")
    conversation = begun.accepted.conversation
    server.say(f"/attach {conversation}")
    await wait_until(lambda: any("now shows all of" in text for text in server.seen()))
    words = " ".join(f"word-{number}" for number in range(1, 41))
    async with (
        client(running) as http,
        open_socket(running.url, running.token) as socket,
        terminal(running, conversation) as screen,
    ):
        await socket.done("subscribe", conversation=conversation)
        with anyio.move_on_after(25):
            await wait_until(lambda: "the beginning" in screen.text)
        assert "the beginning" in screen.text, screen.text
        sent = await http.post(f"/conversations/{conversation}/messages", json={"content": "slow:40:5"})
        turn = sent.headers["x-turn-id"]
        again = await http.get(f"/api/turns/{turn}/events")
        assert _sse_text(sent.text) == _sse_text(again.text) == words
        assert shown(await socket.until_end(turn)) == words
        await wait_until(lambda: words in screen.text.replace("\n", " "))
        await wait_until(lambda: any(text.endswith(words) for text in server.seen()))
        (seen,) = [text for text in server.seen() if text.endswith(words)]
        assert seen == f"You, over HTTP: slow:40:5\n\n{words}"
        assert screen.text.count("word-40") == 1

        server.say('call:write_file {"path": "f22.md", "content": "beans"}')
        await wait_until(lambda: any(one.buttons and "f22.md" in one.text for one in server.shown()))
        asked = next(one for one in server.shown() if one.buttons and "f22.md" in one.text)
        (waiting,) = (await http.get("/api/approvals")).json()["approvals"]
        place = f"/api/turns/{waiting['turn']}/calls/{waiting['call']}/decision"
        press = server.press(f"deny {waiting['id']}")
        decided = await http.post(place, json={"hash": waiting["hash"], "allow": True})
        await wait_until(lambda: press in server.pressed and not asked.buttons)
        outcome = "Allowed by" if decided.is_success else "Denied by"
        assert asked.text.startswith(outcome) and decided.status_code in (200, 202, 204, 409)
        events = await socket.until_end(waiting["turn"])
        settled = [one for one in events if isinstance(one, ApprovalSettledEnvelope)]
        assert {one.payload.allow for one in settled} == {decided.is_success}
        await wait_until(lambda: ("allowed" if decided.is_success else "denied") in screen.text.lower())


def _sse_text(stream: str) -> str:
    """The answer that a stream of server-sent events shows."""
    events = [part.split("\n") for part in stream.replace("\r", "").split("\n\n")]
    deltas = [lines for lines in events if "event: text-delta" in lines]
    return "".join(
        json.loads(line[5:])["content"] for lines in deltas for line in lines if line.startswith("data:")
    )


async def test_a_channel_is_tested_and_paused_without_a_loss(both: tuple[Platform, BotApiServer]) -> None:
    """A test notice arrives. What is written while the channel is paused is answered once after it is resumed."""
    running, server = both

    async def channels(*words: str) -> str:
        done = await anyio.run_process(
            [*TRUNKLINE, "channels", *words], env=environ(running), check=False, stderr=subprocess.STDOUT
        )
        return done.stdout.decode()

    assert "has sent you a notice" in await channels("test", "telegram")
    assert "This is a test of Trunkline: this channel reaches you." in server.seen()
    with anyio.fail_after(60):  # a bot reports that it works when a request for messages has ended
        while "receives messages" not in await channels("list"):  # noqa: ASYNC110 - asked of a program
            await anyio.sleep(0.1)
    assert "is paused" in await channels("pause", "telegram")
    server.say("say:written while paused")
    assert "paused" in await channels("list", "--json")
    assert "not connected" in await channels("test", "telegram")
    assert "written while paused" not in server.seen()
    assert "runs again" in await channels("resume", "telegram")
    await wait_until(lambda: "written while paused" in server.seen())
    assert server.seen().count("written while paused") == 1
    assert "No channel 'pigeon' runs." in await channels("test", "pigeon")
