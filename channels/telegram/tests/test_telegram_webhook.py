"""A bot to which Telegram sends its updates, through a reverse proxy: what counts, and what kills do not lose."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from trunkline import ConfigError
from trunkline.api.testing import (
    ChannelInstallation,
    ScriptedFault,
    ScriptedGateway,
    channel_installation,
    running_channel,
    wait_until,
)
from trunkline.home.listeners import read_listeners
from trunkline_telegram.channel import TelegramChannel
from trunkline_telegram.settings import TelegramSettings

from .bot_api_server import BOT, OWNER, QUICK, TOKEN, BotApiServer, bot_api_server

pytestmark = pytest.mark.anyio

URL = "https://bot.example.org/telegram"


def proxied(home: Path) -> str:
    """Return the address to which a reverse proxy passes requests on, "" if nothing listens."""
    found = (one.address for one in read_listeners(home / "run") if "channels.telegram" in one.purpose)
    return next(found, "")


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)


def channel(server: BotApiServer, home: Path, **more: object) -> TelegramChannel:
    """A channel with a webhook."""
    section: dict[str, object] = {
        "owners": (OWNER,),
        "edit_seconds": 0.02,
        "webhook_url": URL,
        "listen": "127.0.0.1:0",
    }
    settings = TelegramSettings(api_url=server.url, **{**section, **more})  # type: ignore[arg-type]
    return TelegramChannel(settings, QUICK, home=home)


@asynccontextmanager
async def talking(home: Path) -> AsyncIterator[tuple[BotApiServer, ScriptedGateway]]:
    """A server, a gateway and the running channel between them."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        server.proxy = lambda: proxied(home)
        async with running_channel(channel(server, home), gateway):
            await wait_until(lambda: proxied(home))
            yield server, gateway


async def test_updates_are_received_in_their_order_and_confirmed_late(tmp_path: Path) -> None:
    """An update is confirmed when the gateway has it; one that is sent again begins one turn."""
    async with talking(tmp_path) as (server, gateway):
        gateway.away = True
        for word in ("one", "two"):
            server.say(word)
        await wait_until(lambda: server.webhook)
        assert server.webhook["max_connections"] == "1" and server.confirmed == 0
        gateway.away = False
        await wait_until(lambda: server.seen() == ["You said: one", "You said: two"])
        await wait_until(lambda: server.confirmed == 502)
        server.repeat()
        server.say("three")
        await wait_until(lambda: "You said: three" in server.seen())
        assert "getUpdates" not in server.calls and "deleteWebhook" not in server.calls
    assert [message.content for message in gateway.sent] == ["one", "two", "three"]


async def test_a_request_without_the_secret_changes_nothing(tmp_path: Path) -> None:
    """A forged, a broken or an oversized request is refused, and begins no turn."""
    async with talking(tmp_path) as (server, gateway):
        await wait_until(lambda: server.webhook)
        update = {"update_id": 1, "message": {"message_id": 1, "date": 1, "text": "forged",
                  "chat": {"id": OWNER, "type": "private"}, "from": BOT | {"id": OWNER, "is_bot": False}}}  # fmt: skip
        header = "X-Telegram-Bot-Api-Secret-Token"
        secret = {header: server.webhook["secret_token"]}
        async with httpx.AsyncClient(base_url=proxied(tmp_path), timeout=30) as http:
            forged = [
                await http.post("/telegram", json=update, headers=one) for one in ({}, {header: "wrong"})
            ]
            broken = await http.post("/telegram", content=b"[", headers=secret)
            large = await http.post("/telegram", content=b"x" * 2_000_000, headers=secret)
        server.say("mine")
        await wait_until(lambda: server.seen() == ["You said: mine"])
    assert [one.status_code for one in (*forged, broken, large)] == [401, 401, 400, 413]
    assert [message.content for message in gateway.sent] == ["mine"]
    assert TOKEN.partition(":")[2] not in secret[header]


async def test_an_address_that_is_refused_is_named(tmp_path: Path) -> None:
    """An address without https is found when the settings are read, one that Telegram refuses when it is set."""
    with pytest.raises(ConfigError, match=r"channels\.telegram\.webhook_url"):
        TelegramSettings(webhook_url="http://bot.example.org")
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server, tmp_path, webhook_url="https://refused.example.org").run(gateway)
    error: BaseException = refused.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, ConfigError) and "channels.telegram.webhook_url" in error.sentence


async def test_polling_after_a_webhook_loses_nothing(tmp_path: Path) -> None:
    """Who removes the setting goes on by polling, with the messages that came meanwhile."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        server.webhook = {"url": URL, "secret_token": "x"}
        server.say("three")
        async with running_channel(channel(server, tmp_path, webhook_url=""), gateway):
            await wait_until(lambda: server.seen() == ["You said: three"])


@pytest.mark.kill
async def test_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """The process ends at each step of an answer: before and after Telegram is told of the webhook too."""
    async with bot_api_server() as server:
        section = {"owners": [OWNER], "api_url": server.url, "edit_seconds": 0.05, "lease_seconds": 1,
                   "webhook_url": URL, "listen": "127.0.0.1:0"}  # fmt: skip
        server.proxy = lambda: proxied(tmp_path)
        environ = {"TELEGRAM_BOT_TOKEN": TOKEN}
        async with channel_installation(tmp_path, "telegram", section, server, environ) as installation:
            for method in ("setWebhook", "sendMessage", "editMessageText"):
                for when in ("before", "after"):
                    await _survive(installation, server, method, when)


async def _survive(
    installation: ChannelInstallation[BotApiServer], server: BotApiServer, method: str, when: str
) -> None:
    word = f"{method}-{when}"
    if method == "setWebhook":
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(ScriptedFault(method, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    installation.ask(word)
    if not installation.channels.alive:
        installation.channels.launch()
    await wait_until(lambda: not server.faults)
    await installation.until_answered([word])
