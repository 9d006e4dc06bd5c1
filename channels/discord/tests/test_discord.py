"""The Discord channel on a scripted gateway: what people see, and what Discord's errors lead to."""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import STATE_PREFIX, AccountState
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import FeedEvent, TextDelta, TurnEnded
from trunkline.contracts.turns.feed_messages import TextReset
from trunkline_discord.channel import DiscordChannel
from trunkline_discord.settings import DiscordSettings

from .discord_server import (
    BOT_ID,
    CHANNEL,
    HIDDEN,
    OWNER,
    ROLE,
    STRANGER,
    THREAD,
    TOKEN,
    DiscordServer,
    discord_server,
    dm_of,
)

pytestmark = pytest.mark.anyio

ME = f"<@{BOT_ID}>"
SEND, EDIT = "POST /channels/{channel}/messages", "PATCH /channels/{channel}/messages/{message}"
LIST = "GET /channels/{channel}/messages"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_BOT_TOKEN", TOKEN)


def channel(server: DiscordServer, **more: object) -> DiscordChannel:
    """A channel that edits quickly."""
    fast: dict[str, object] = {"owners": (OWNER,), "edit_seconds": 0.02}
    return DiscordChannel(DiscordSettings(api_url=server.url, **{**fast, **more}))  # type: ignore[arg-type]


@asynccontextmanager
async def talking(
    answer: object = None, **more: object
) -> AsyncIterator[tuple[DiscordServer, ScriptedGateway, DiscordChannel]]:
    """A server, a gateway and the running channel between them."""
    gateway = ScriptedGateway(answer) if answer else ScriptedGateway(blocks=("main", "garden"))  # type: ignore[arg-type]
    async with gateway, discord_server() as server:
        one = channel(server, **more)
        async with running_channel(one, gateway):
            await wait_until(lambda: server.commands)
            yield server, gateway, one
        assert server.problems == []


def long_answer(message: SendMessage) -> Iterable[FeedEvent]:
    """An answer of several posts with a code block over a border, and a reset step before it."""
    yield TextDelta(step=0, offset=0, text="A beginning that is withdrawn. " * 200)
    yield TextReset(step=0)
    yield TextDelta(
        step=0,
        offset=0,
        text="**Bold** 😀 words_with_marks. " * 100 + "\n\n```python\n" + "x = 1\n" * 600 + "```\n\nEnd.",
    )
    yield TurnEnded(reason="stop")


async def test_a_long_answer_is_shown_in_pieces_that_discord_accepts() -> None:
    """Pieces have at most 2000 units, a code block goes on in the next piece, and withdrawn text is gone."""
    async with talking(long_answer) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and server.seen()[-1].endswith("End."))
        texts = server.seen()
    assert "withdrawn" not in "".join(texts)
    assert sum(text.count("x = 1") for text in texts) == 600
    code = [text for text in texts if "x = 1" in text]
    assert len(code) > 1 and all(text.count("```") == 2 and "```python\n" in text for text in code)
    assert "**Bold** 😀 words\\_with\\_marks." in texts[0]


async def test_what_looks_like_markdown_or_a_mention_is_shown_as_it_is() -> None:
    """Marks, mentions and fences of an answer cannot change what people see or call them."""

    def tricky(message: SendMessage) -> Iterable[FeedEvent]:
        text = "\\# no head, a_b_c, 2 \\* 3 \\* 4, <@1001> and https://e.example/a_b `x_y` [to_b](https://e.example/(a)_b)"
        yield TextDelta(step=0, offset=0, text=text)
        yield TurnEnded(reason="stop")

    async with talking(tricky) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen())
        (text,) = server.seen()
    assert text == ("\\# no head, a\\_b\\_c, 2 \\* 3 \\* 4, \\<@1001> and https://e.example/a_b `x_y` to\\_b")


async def test_messages_that_discord_repeats_are_answered_once() -> None:
    """The same messages again begin no turn and show nothing, also after a restart of the channel."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        async with running_channel(channel(server), gateway):
            server.say("one")
            server.say("/help")
            await wait_until(lambda: len(server.seen()) == 2)
            server.repeat()
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.identified == 2)
            server.repeat()
            server.say("two")
            await wait_until(lambda: "You said: two" in server.seen())
        assert len(server.seen()) == 3
    assert [message.content for message in gateway.sent] == ["one", "two"]
    assert gateway.sent[1].conversation is not None


async def test_a_stranger_gets_one_line_and_costs_nothing() -> None:
    """A stranger is told once that the bot is private, begins no turn, decides nothing, and is not heard in servers."""
    async with talking() as (server, gateway, _):
        asked = gateway.request_approval("Send the mail?")
        for text in ("hello", "/help", "approve " + asked.id):
            server.say(text, user=STRANGER)
        server.say(f"{ME} hello", user=STRANGER, channel=CHANNEL)
        press = server.press(f"approve {asked.id}", user=STRANGER)
        command = server.command("stop", user=STRANGER)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
        await wait_until(lambda: press in server.said and command in server.said)
    (line,) = server.seen(dm_of(STRANGER))
    assert "private" in line and str(STRANGER) in line
    assert server.said[press] == server.said[command] == "Only the owner decides." and gateway.decided == []
    assert [message.content for message in gateway.sent] == ["mine"] and server.seen(CHANNEL) == []


async def test_in_servers_the_owner_is_heard_by_mention_and_reply() -> None:
    """A mention or a reply is answered in its channel or thread, each a conversation, and other talk is not heard."""
    async with talking() as (server, gateway, _):
        server.say("not for the bot", channel=CHANNEL)
        server.say(f"{ME} first", channel=CHANNEL)
        await wait_until(lambda: len(server.seen(CHANNEL)) == 1)
        own = server.shown(CHANNEL)[0]
        reply = {"referenced_message": {**server._message(own)}, "type": 19}
        server.say("second", channel=CHANNEL, **reply)
        server.say(f"third, <@&{ROLE}>", channel=THREAD)
        await wait_until(lambda: len(server.seen(CHANNEL)) == 2 and len(server.seen(THREAD)) == 1)
        assert all(one.reply_to for one in (*server.shown(CHANNEL), *server.shown(THREAD)))
    assert [message.content for message in gateway.sent] == ["first", "second", "third,"]
    assert gateway.sent[1].conversation is not None and gateway.sent[2].conversation is None


async def test_servers_can_be_switched_off() -> None:
    """With ``servers = false`` only direct messages are answered."""
    async with talking(servers=False) as (server, gateway, _):
        server.say(f"{ME} hello", channel=CHANNEL)
        server.say("direct")
        await wait_until(lambda: server.seen() == ["You said: direct"])
    assert len(gateway.sent) == 1


async def test_slash_commands_are_set_and_answered() -> None:
    """The commands are in Discord's menu; each answers the owner alone, at once acknowledged, and reaches no agent."""
    async with talking() as (server, gateway, _):
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 1)
        wanted = [
            ("status", ""),
            ("cost", ""),
            ("block", ""),
            ("block", "nobody"),
            ("stop", ""),
            ("approve", ""),
        ]
        tokens = [server.command(name, words) for name, words in [*wanted, ("block", "garden")]]
        await wait_until(lambda: len(server.said) == len(tokens))
        server.say("hello garden")
        await wait_until(lambda: "You said: hello garden" in server.seen())
        text = "\n".join(server.said[token] for token in tokens)
    assert [command["name"] for command in server.commands][:3] == ["new", "block", "model"]
    assert "scripted/model answers here" in text and "Today, everything" in text and "main, garden" in text
    assert "Here you talk with garden" in text and "no block nobody" in text and "Write the id" in text
    assert [(message.content, message.block) for message in gateway.sent] == [
        ("hello", None),
        ("hello garden", "garden"),
    ]
    assert len(server.seen()) == 2


async def test_commands_that_are_set_already_are_not_set_again() -> None:
    """A restart asks which commands there are, and changes nothing."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        for number in (1, 2):
            async with running_channel(channel(server), gateway):
                server.say(f"message {number}")
                await wait_until(lambda: len(server.seen()) == number)  # noqa: B023 the wait ends in this iteration
        assert server.calls.count("PUT /applications/{application}/commands") == 1


async def test_a_press_is_acknowledged_while_the_gateway_is_away() -> None:
    """Discord waits three seconds for the acknowledgement; the decision follows when the gateway is back."""
    async with talking() as (server, gateway, _):
        asked = gateway.request_approval("Send the mail?")
        await wait_until(lambda: server.shown() and server.shown()[0].buttons)
        gateway.away = True
        press = server.press(f"approve {asked.id}")
        await wait_until(lambda: press in server.acknowledged)
        assert press not in server.said
        gateway.away = False
        await wait_until(lambda: press in server.said)
    assert "Allowed" in server.said[press] and gateway.decided == [(asked.turn, asked.call, True)]


async def test_an_approval_has_buttons_until_it_is_decided() -> None:
    """A press decides; a decision elsewhere, also while the channel was down, takes the buttons away."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        first, second, third = (gateway.request_approval(f"Send mail {number}?") for number in range(3))
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: len(server.shown()) == 3)
            buttons = server.shown()[0].buttons
            assert buttons == {
                "Allow once": f"approve {first.id}", "Deny": f"deny {first.id}",
                "Allow in this conversation": f"approve {first.id} conversation",
                "Always allow": f"approve {first.id} always",
            }  # fmt: skip
            press = server.press(buttons["Deny"])
            await wait_until(lambda: press in server.said and not server.shown()[0].buttons)
            gateway.settle(second, allow=True, by="terminal")
            await wait_until(lambda: not server.shown()[1].buttons)
        gateway.settle(third, allow=True, by="terminal")
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: not server.shown()[2].buttons)
        assert len(server.shown()) == 3
    assert gateway.decided == [(first.turn, first.call, False)]
    assert "Denied" in server.said[press] and "Denied by" in server.seen()[0]
    assert "terminal" in server.seen()[1] and "no longer waits" in server.seen()[2]


@pytest.mark.parametrize("route", [SEND, EDIT])
async def test_an_answer_of_discord_that_is_lost_repeats_nothing(route: str) -> None:
    """The connection breaks after Discord has acted: the post is shown once."""
    async with talking() as (server, _, _):
        server.faults.append(ScriptedFault(route, lost=True))
        server.say("one")
        server.say("two")
        await wait_until(lambda: {"You said: one", "You said: two"} <= {*server.seen()})
        server.say("three")
        await wait_until(lambda: "You said: three" in server.seen())
    assert sorted(server.seen()) == ["You said: one", "You said: three", "You said: two"]


@pytest.mark.parametrize(
    "answer",
    [
        (429, {"message": "You are being rate limited.", "retry_after": 0.2, "global": False}),
        (502, {"message": "Bad Gateway", "code": 0}),
        (500, {"message": "Internal Server Error", "code": 0}),
    ],
)
@pytest.mark.parametrize(
    "route", [SEND, EDIT, LIST, "GET /gateway/bot", "GET /applications/{application}/commands"]
)
async def test_a_passing_error_of_discord_loses_nothing(
    route: str, answer: tuple[int, dict[str, object]]
) -> None:
    """After an error that passes, each message is answered once."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        server.faults.append(ScriptedFault(route, answer=answer))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_supervise, channel(server), gateway)
                server.say("hello")
                await wait_until(lambda: server.seen() == ["You said: hello"])
                tasks.cancel_scope.cancel()
    assert len(gateway.sent) == 1


async def _supervise(one: DiscordChannel, gateway: ScriptedGateway) -> None:
    """Start the channel again after an error, as the channels worker does."""
    while True:
        try:
            await one.run(gateway)
        except Exception:
            await anyio.sleep(0.05)


async def test_a_closed_connection_is_resumed_without_a_gap() -> None:
    """Messages that arrive while the connection is closed are delivered by the resumed session."""
    async with talking() as (server, _, _):
        server.say("one")
        await wait_until(lambda: len(server.seen()) == 1)
        server.disconnect(4000)
        server.say("two")
        await wait_until(lambda: server.seen() == ["You said: one", "You said: two"])
        assert (server.identified, server.resumed) == (1, 1)


async def test_a_session_that_is_not_resumed_reads_what_was_missed() -> None:
    """A new session has no events of the time between: direct messages, channels and threads are read, each once."""
    async with talking() as (server, gateway, _):
        server.say("one")
        server.say(f"{ME} in the thread", channel=THREAD)
        await wait_until(lambda: len(server.seen()) == 1 and len(server.seen(THREAD)) == 1)
        server.disconnect(4000, forget=True)
        server.say("two", tell=False)
        server.say(f"{ME} three", channel=CHANNEL, tell=False)
        server.say("not for the bot", channel=CHANNEL, tell=False)
        server.say(f"{ME} four", channel=THREAD, tell=False)
        server.say(f"{ME} five", channel=HIDDEN, tell=False)
        await wait_until(lambda: "You said: two" in server.seen())
        await wait_until(lambda: server.seen(CHANNEL) == ["You said: three"])
        await wait_until(lambda: server.seen(THREAD) == ["You said: in the thread", "You said: four"])
        assert server.identified == 2 and server.seen(HIDDEN) == []
    contents = [message.content for message in gateway.sent]
    assert sorted(contents) == ["four", "in the thread", "one", "three", "two"]


async def test_a_start_reads_what_was_missed_and_nothing_old() -> None:
    """A channel that was off reads what came meanwhile; on its first start it answers nothing old."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        old = server.say("long ago", tell=False)
        server.messages[old].id = server._id_at(1_700_000_000)
        server.messages = {one.id: one for one in server.messages.values()}
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: len(server.seen()) == 1)
        server.say("two", tell=False)
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.seen() == ["You said: one", "You said: two"])
    assert [message.content for message in gateway.sent] == ["one", "two"]


async def test_of_two_processes_with_one_bot_the_second_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The second process does not connect until the first ends, says who serves the bot, and then goes on."""
    async with ScriptedGateway() as gateway, discord_server() as server, anyio.create_task_group() as tasks:
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: server.seen() == ["You said: one"])
            tasks.start_soon(channel(server).run, gateway)
            await wait_until(lambda: "this process waits" in caplog.text)
            assert server.identified == 1
            states = await gateway.records().list(STATE_PREFIX, AccountState)
            assert {one.value.state for one in states} == {"serving", "waiting"}
        server.say("three")
        with anyio.fail_after(60):
            await wait_until(lambda: "You said: three" in server.seen())
        tasks.cancel_scope.cancel()


async def test_a_closed_owner_and_a_deleted_answer_end_quietly() -> None:
    """Nothing is sent to whoever refuses messages, a deleted answer stays deleted, and others are answered."""
    ended = anyio.Event()

    def slow(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text=f"To {message.content}: ")
        if message.content == "delete":
            yield ended
        yield TextDelta(step=0, offset=99, text="done")
        yield TurnEnded(reason="stop")

    async with talking(slow) as (server, _, _):
        server.say("delete")
        await wait_until(lambda: server.seen() == ["To delete:"])
        server.messages.pop(server.shown()[0].id)
        ended.set()
        server.closed_to.add(OWNER)
        server.say("closed")
        await wait_until(lambda: server.calls.count(SEND) >= 2)
        server.closed_to.clear()
        server.say("open")
        await wait_until(lambda: server.seen() == ["To open: done"])


async def test_what_the_channel_cannot_read_is_said() -> None:
    """A sticker, a file that is too large and one that is gone get a sentence, and reach no agent."""
    async with talking() as (server, gateway, _):
        server.say("", sticker_items=[{"id": "1", "name": "cat", "format_type": 1}])
        server.say("see", attachments=[server.attachment("big.bin", "application/zip", b"", size=1 << 30)])
        server.say("see", attachments=[server.attachment("gone.pdf", "application/pdf", None)])
        server.say("joined", type=7)
        server.say("beep", user=BOT_ID)
        server._tell("WHAT_IS_THIS", {})
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 4)
    text = "\n".join(server.seen())
    assert "I cannot read this (sticker)" in text and "larger than 20 MB" in text and "no longer has" in text
    assert [message.content for message in gateway.sent] == ["hello"]


async def test_files_and_voice_reach_the_agent() -> None:
    """A picture with words, a document without any, and what is said in a voice message become the agent's message."""
    async with talking() as (server, gateway, _):
        server.say("look", attachments=[server.attachment("a.png", "image/png", b"picture")])
        server.say("", attachments=[server.attachment("b.txt", "text/plain", b"document")])
        server.say("", attachments=[server.attachment("v.ogg", "audio/ogg", b"voice")], flags=1 << 13)
        await wait_until(lambda: len(server.seen()) == 3)
    first, second = gateway.sent[:2]
    assert first.content == "look" and [one.data for one in first.documents] == [b"picture"]
    assert [(one.name, one.data) for one in second.documents] == [("b.txt", b"document")]
    assert "[Voice message]" in gateway.sent[2].content


async def test_the_owner_is_told_and_an_unreached_owner_is_an_error() -> None:
    """A notice reaches each owner; if none can be reached, the sender learns it. Before the start nothing is sent."""
    async with talking() as (server, gateway, one):
        server.say("hello")
        await wait_until(lambda: len(gateway.sent) == 1)
        await one.tell_owner("news")
        assert "news" in server.seen()
        server.closed_to.add(OWNER)
        with pytest.raises(Unavailable, match=r"channels\.discord\.owners"):
            await one.tell_owner("more news")
    with pytest.raises(Unavailable):
        await one.tell_owner("too late")


async def test_the_token_is_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every logger at its most talkative, neither good calls nor refused tokens nor broken connections show it."""
    secret = TOKEN.rpartition(".")[2]
    caplog.set_level(1)
    for name in ("hikari", "aiohttp", "asyncio", ""):
        logging.getLogger(name).setLevel(1)
    async with talking() as (server, _, one):
        server.faults.append(ScriptedFault(SEND, lost=True))
        server.say("hello")
        await wait_until(lambda: server.seen() == ["You said: hello"])
        assert secret not in repr(vars(one))
    monkeypatch.setenv("DISCORD_BOT_TOKEN", TOKEN[:-1] + "B")
    async with ScriptedGateway() as gateway, discord_server() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    shown = f"{refused.value!r} {refused.value.__cause__!r}"
    assert "refuses the bot's token in DISCORD_BOT_TOKEN" in shown
    assert secret[:-1] not in shown and secret[:-1] not in caplog.text
    assert "dispatching READY" in caplog.text or "READY" in caplog.text  # the loggers do show what is sent


async def test_a_permission_that_is_missing_is_named() -> None:
    """Without the intent to read messages the error says where to switch it on."""
    async with ScriptedGateway() as gateway, discord_server() as server:
        server.intents_permitted = False
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    error = refused.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, ConfigError) and "Message Content Intent" in error.hint


@pytest.mark.parametrize(
    ("value", "sentence"), [("", "is not set"), ("hello", "is not a token"), ("a.b.c", "is not a token")]
)
async def test_a_missing_token_is_named_with_its_setting(
    value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting and the variable, and not the value."""
    monkeypatch.setenv("DISCORD_BOT_TOKEN", value)
    async with ScriptedGateway() as gateway:
        with pytest.raises(ConfigError, match=r"channels\.discord\.token") as refused:
            await DiscordChannel(DiscordSettings(owners=(OWNER,))).run(gateway)
    assert sentence in refused.value.sentence and (not value or value not in refused.value.sentence)


async def test_an_address_that_is_none_is_refused_with_its_setting() -> None:
    """A wrong api_url is found when the settings are read."""
    with pytest.raises(ConfigError, match=r"channels\.discord\.api_url"):
        DiscordSettings(api_url="discord")
