"""E-mail beside other channels, on one platform: approvals, files, and messages to the owner."""

from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

import trunkline
from trunkline.api.testing import Platform, platform, wait_until
from trunkline.testing.scripted_model import ScriptedModel

from .mail_servers import decision_words, mail_servers
from .mail_store import PASSWORD, MailStore

pytestmark = pytest.mark.anyio


class Models:
    """A plugin with a model that does what it is told."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@pytest.fixture(scope="module")
async def both(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Platform, MailStore]]:
    """A platform with the e-mail channel and HTTP, and the mail servers."""
    home: Path = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EMAIL_PASSWORD", PASSWORD)
        async with mail_servers() as servers:
            section = servers.section()
            config = {f"channels.email.{key}": value for key, value in section.items()}
            config |= {"channels.email.owners": list(section["owners"]), "channels.enabled": ["email"]}
            config |= {"runtime.provider_adapter": "scripted", "permissions.approvals": "some"}
            async with platform(home, plugins=[Models()], config=config) as running:
                await wait_until(lambda: "IDLE" in servers.store.commands)
                yield running, servers.store


def client(running: Platform) -> httpx.AsyncClient:
    """The HTTP client of the owner."""
    headers = {"authorization": f"Bearer {running.token}"}
    return httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60)


async def test_MB_T11_an_approval_asked_by_mail_is_decided_by_http(both: tuple[Platform, MailStore]) -> None:
    """A call of a turn from a mail is visible to every client; the first decision counts, and a mail tells it."""
    running, store = both
    before = len(store.mails())
    store.say('call:write_file {"path": "t11.md", "content": "from afar"}')
    await wait_until(lambda: any("t11.md" in text for text in store.seen()[before:]))
    async with client(running) as http:
        (waiting,) = (await http.get("/api/approvals")).json()["approvals"]
        assert waiting["channel"] == "email"
        words = decision_words(store.seen(), waiting["id"], "deny")
        place = f"/api/turns/{waiting['turn']}/calls/{waiting['call']}/decision"
        decided = await http.post(place, json={"hash": waiting["hash"], "allow": True})
        assert decided.is_success, decided.text
    await wait_until(lambda: any("Allowed by" in text for text in store.seen()[before:]))
    await wait_until(lambda: any("Created t11.md" in text for text in store.seen()[before:]))
    store.say(words)
    await wait_until(lambda: any("no longer waits" in text for text in store.seen()[before:]))


async def test_an_approval_of_another_client_is_decided_by_mail(both: tuple[Platform, MailStore]) -> None:
    """The owner allows by mail what an agent wants to do in a conversation over HTTP: to send a mail."""
    running, store = both
    before = len(store.mails())
    async with client(running) as http:
        wanted = 'call:send_channel_message {"channel": "email", "content": "the beans are ripe"}'
        message = {"model": "main", "messages": [{"role": "user", "content": wanted}]}
        await http.post("/v1/chat/completions", json=message)
        await wait_until(lambda: len(store.mails()) > before)
        (waiting,) = (await http.get("/api/approvals")).json()["approvals"]
    store.say(decision_words(store.seen()[before:], waiting["id"], "approve").replace("approve", "yes"))
    await wait_until(lambda: "From the agent of block main:\nthe beans are ripe" in store.seen())
    assert store.seen().count("From the agent of block main:\nthe beans are ripe") == 1


async def test_a_file_of_a_mail_is_an_attachment_of_the_message(both: tuple[Platform, MailStore]) -> None:
    """The file arrives in memory as it was sent, beside the conversation, and the model reads it."""
    running, store = both
    before, data = len(store.mails()), "".join(f"bean {number}\n" for number in range(2_000))
    mail = EmailMessage()
    mail.set_content("say:thanks for the list")
    mail.add_attachment(data, filename="beans.txt")
    store.deliver(mail)
    await wait_until(lambda: any(text.startswith("thanks for the list") for text in store.seen()[before:]))
    (found,) = running.home.path.rglob("*beans.txt")
    assert found.read_text() == data
