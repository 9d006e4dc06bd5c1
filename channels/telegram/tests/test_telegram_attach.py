"""A chat that is attached to a conversation shows all of it once, wherever it is said, across restarts."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import TextDelta, TurnEnded
from trunkline_telegram.channel import TelegramChannel
from trunkline_telegram.settings import TelegramSettings

from .bot_api_server import OWNER, TOKEN, BotApiServer, bot_api_server

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)


@asynccontextmanager
async def running(server: BotApiServer, gateway: ScriptedGateway) -> AsyncIterator[None]:
    """The channel runs in this block."""
    gateway.channel = "telegram"
    settings = TelegramSettings(api_url=server.url, owners=(OWNER,), edit_seconds=0.02, poll_seconds=5)
    async with running_channel(TelegramChannel(settings), gateway):
        yield


async def attach(server: BotApiServer, conversation: str) -> None:
    """Attach the owner's chat."""
    server.say(f"/attach {conversation}")
    await wait_until(lambda: any("now shows all of" in text for text in server.seen()))


async def test_what_is_said_elsewhere_is_shown_with_its_question() -> None:
    """The chat shows the question with its channel, and the answer; its own messages are not quoted to it."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        conversation = gateway.add_conversation("main", [], "Beans")
        async with running(server, gateway):
            await attach(server, conversation)
            await gateway.say_elsewhere(conversation, "from the web")
            await wait_until(lambda: any("You said: from the web" in text for text in server.seen()))
            server.say("from the phone")
            await wait_until(lambda: "You said: from the phone" in server.seen())
    begin, elsewhere, own = server.seen()
    assert "Beans" in begin
    assert elsewhere == "You, over HTTP: from the web\n\nYou said: from the web"
    assert own == "You said: from the phone"
    assert gateway.sent[-1].conversation == conversation


async def test_a_running_turn_is_shown_from_its_beginning() -> None:
    """A running turn is shown whole, and what a steering message says is quoted."""
    going_on = anyio.Event()

    def answer(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text="The beginning ")
        yield going_on
        yield TextDelta(step=0, offset=14, text="and the end.")
        yield TurnEnded(reason="stop")

    async with ScriptedGateway(answer) as gateway, bot_api_server() as server:  # type: ignore[arg-type]
        conversation = gateway.add_conversation("main", [])
        await gateway.say_elsewhere(conversation, "go", channel="terminal")
        async with running(server, gateway):
            await attach(server, conversation)
            await wait_until(lambda: any("The beginning" in text for text in server.seen()))
            going_on.set()
            await wait_until(lambda: any("and the end." in text for text in server.seen()))
    assert server.seen()[-1] == "You, in the terminal: go\n\nThe beginning and the end."


async def test_a_restart_misses_and_repeats_nothing() -> None:
    """Turns that begin and end while the channel does not run are shown by the next one, in their order, once."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        conversation = gateway.add_conversation("main", [])
        async with running(server, gateway):
            await attach(server, conversation)
            await gateway.say_elsewhere(conversation, "one")
            await wait_until(lambda: any("You said: one" in text for text in server.seen()))
        for word in ("two", "three"):
            await gateway.say_elsewhere(conversation, word)
        for _ in range(2):
            async with running(server, gateway):
                await wait_until(lambda: any("You said: three" in text for text in server.seen()))
        async with running(server, gateway):
            await gateway.say_elsewhere(conversation, "four")
            await wait_until(lambda: any("You said: four" in text for text in server.seen()))
    said = [text.rpartition("You said: ")[2] for text in server.seen() if "You said: " in text]
    assert said == ["one", "two", "three", "four"]


async def test_a_detached_chat_shows_only_its_own() -> None:
    """After /detach and after /new nothing that is said elsewhere appears."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        conversation = gateway.add_conversation("main", [])
        async with running(server, gateway):
            await attach(server, conversation)
            server.say("/detach")
            await wait_until(lambda: len(server.seen()) == 2)
            await gateway.say_elsewhere(conversation, "unseen")
            server.say("mine")
            await wait_until(lambda: "You said: mine" in server.seen())
            server.say("/attach")
            await wait_until(lambda: len(server.seen()) == 4)
            server.say("/new")
            await wait_until(lambda: len(server.seen()) == 5)
            await gateway.say_elsewhere(conversation, "unseen too")
            server.say("other")
            await wait_until(lambda: "You said: other" in server.seen())
    assert not any("unseen" in text for text in server.seen())
    assert gateway.sent[-1].conversation is None


async def test_without_a_name_the_conversations_are_listed() -> None:
    """/attach in a chat without a conversation names the latest ones, and an unknown id is refused with a reason."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        conversation = gateway.add_conversation("main", [], "Beans")
        async with running(server, gateway):
            server.say("/attach")
            server.say("/attach conv_nothing")
            await wait_until(lambda: len(server.seen()) == 2)
    listed, unknown = server.seen()
    assert f"/attach {conversation}" in listed and "Beans" in listed
    assert "no conversation" in unknown
