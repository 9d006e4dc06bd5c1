"""Telegram beside other channels, on one platform: who gets which answer, and who may decide."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import trunkline
from trunkline.api.testing import Platform, platform, wait_until
from trunkline.testing.scripted_model import ScriptedModel

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
