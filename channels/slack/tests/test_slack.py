"""The Slack channel on a scripted gateway: what people see, and what Slack's errors lead to."""

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
from trunkline_slack.channel import SlackChannel
from trunkline_slack.settings import SlackSettings

from .slack_server import (
    APP_TOKEN,
    BOT,
    BOT_TOKEN,
    CHANNEL,
    FOREIGN,
    OWNER,
    PRIVATE,
    STRANGER,
    SlackServer,
    dm_of,
    slack_server,
)

pytestmark = pytest.mark.anyio

ME = f"<@{BOT}>"
SEND, EDIT, LIST = "chat.postMessage", "chat.update", "conversations.history"


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    monkeypatch.setenv("SLACK_APP_TOKEN", APP_TOKEN)


def channel(server: SlackServer, **more: object) -> SlackChannel:
    """A channel that edits quickly."""
    fast: dict[str, object] = {"owners": (OWNER,), "edit_seconds": 0.02}
    return SlackChannel(SlackSettings(api_url=server.url, **{**fast, **more}))  # type: ignore[arg-type]


@asynccontextmanager
async def talking(
    answer: object = None, **more: object
) -> AsyncIterator[tuple[SlackServer, ScriptedGateway, SlackChannel]]:
    """A server, a gateway and the running channel between them."""
    gateway = ScriptedGateway(answer) if answer else ScriptedGateway(blocks=("main", "garden"))  # type: ignore[arg-type]
    async with gateway, slack_server() as server:
        one = channel(server, **more)
        async with running_channel(one, gateway):
            await wait_until(lambda: server.sockets)
            yield server, gateway, one
        assert server.problems == []


def refusal(error: BaseException) -> ConfigError:
    """Return the error of the settings in what a channel raised."""
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, ConfigError)
    return error


def long_answer(message: SendMessage) -> Iterable[FeedEvent]:
    """An answer of several posts with a code block over a border, and a reset step before it."""
    yield TextDelta(step=0, offset=0, text="A beginning that is withdrawn. " * 400)
    yield TextReset(step=0)
    yield TextDelta(
        step=0,
        offset=0,
        text="**Bold** 😀 a & b. " * 300 + "\n\n```python\n" + "x = 1\n" * 900 + "```\n\nEnd.",
    )
    yield TurnEnded(reason="stop")


async def test_a_long_answer_is_shown_in_pieces_that_slack_accepts() -> None:
    """Pieces have at most 4000 characters, a code block goes on in the next piece, and withdrawn text is gone."""
    async with talking(long_answer) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and server.seen()[-1].endswith("End."))
        texts, shown = server.seen(), server.shown()
    assert "withdrawn" not in "".join(texts)
    assert sum(text.count("x = 1") for text in texts) == 900
    code = [one for one in shown if any(part["type"] == "rich_text_preformatted" for part in one.elements)]
    assert len(code) > 1
    first = shown[0].elements[0]["elements"]
    assert first[0] == {"type": "text", "text": "Bold", "style": {"bold": True}}
    assert first[1]["text"].startswith(" 😀 a & b.") and "a &amp; b." in texts[0]


async def test_styles_are_drawn_and_nothing_else_is_read_as_one() -> None:
    """Styles become rich text. Marks and mentions of an answer cannot change what people see or call them."""

    def tricky(message: SendMessage) -> Iterable[FeedEvent]:
        text = (
            "a *b **c*** `d` ~~e~~ [f](https://e.example/f) 2 \\* 3 \\* 4 <@UOWNER> <!channel> https://e.example/a_b.\n\n"
            "> quoted _q_\n\n- item\n"
        )
        yield TextDelta(step=0, offset=0, text=text)
        yield TurnEnded(reason="stop")

    async with talking(tricky) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and "item" in server.seen()[0])
        (shown,) = server.shown()
    section, quote, last = shown.elements
    runs = section["elements"]
    assert {"type": "text", "text": "b ", "style": {"italic": True}} in runs
    assert {"type": "text", "text": "c", "style": {"italic": True, "bold": True}} in runs
    assert {"type": "text", "text": "d", "style": {"code": True}} in runs
    assert {"type": "text", "text": "e", "style": {"strike": True}} in runs
    assert {"type": "link", "url": "https://e.example/f", "text": "f"} in runs
    assert {"type": "link", "url": "https://e.example/a_b"} in runs
    assert any("2 * 3 * 4 <@UOWNER> <!channel>" in run.get("text", "") for run in runs)
    assert quote["type"] == "rich_text_quote" and quote["elements"][0]["text"] == "quoted "
    assert "item" in last["elements"][0]["text"] and "&lt;!channel&gt;" in shown.text


async def test_messages_that_slack_repeats_are_answered_once() -> None:
    """The same messages again begin no turn and show nothing, also after a restart of the channel."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        async with running_channel(channel(server), gateway):
            server.say("one &amp; <https://e.example/x|e.example/x>")
            server.say("/help")
            await wait_until(lambda: len(server.seen()) == 2)
            server.repeat()
            await wait_until(lambda: not server.unconfirmed)
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.connected == 2)
            server.repeat()
            server.say("two")
            await wait_until(lambda: "You said: two" in server.seen())
        assert len(server.seen()) == 3
    assert [message.content for message in gateway.sent] == ["one & https://e.example/x", "two"]
    assert gateway.sent[1].conversation is not None


async def test_a_message_is_confirmed_when_the_gateway_has_it() -> None:
    """While the gateway is away Slack keeps the message; it is confirmed afterwards."""
    async with talking() as (server, gateway, _):
        gateway.away = True
        server.say("hello")
        press = server.press("deny nothing")
        await wait_until(lambda: len(server.confirmed) == 1)  # the press, for which Slack does not wait
        assert [one["type"] for one in server.unconfirmed.values()] == ["events_api"]
        gateway.away = False
        await wait_until(lambda: not server.unconfirmed and server.seen() == ["You said: hello"])
        await wait_until(lambda: press in server.said)


async def test_a_stranger_gets_one_line_and_costs_nothing() -> None:
    """A stranger is told once that the bot is private, begins no turn, decides nothing, and is heard in no channel."""
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
    assert "private" in line and "trunkline channels pair slack" in line
    assert server.said[press] == server.said[command] == "Only the owner decides." and gateway.decided == []
    assert [message.content for message in gateway.sent] == ["mine"] and server.seen(CHANNEL) == []


CODE = "7KQ4-XM2P"


async def test_a_pairing_code_links_its_sender_as_the_owner() -> None:
    """Whoever sends the code is served from then on, in channels and after a restart, and gets calls and notices."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        one = channel(server, owners=())
        async with running_channel(one, gateway):
            gateway.codes.append(CODE)
            asked = gateway.request_approval("Send the mail?")
            server.say(CODE, user=STRANGER)
            await wait_until(lambda: len(server.seen(dm_of(STRANGER))) == 2)
            assert any("linked as the owner" in text for text in server.seen(dm_of(STRANGER)))
            press = server.press(f"deny {asked.id}", user=STRANGER)
            await wait_until(lambda: press in server.said and gateway.decided != [])
            server.say(f"{ME} here", user=STRANGER, channel=CHANNEL)
            await wait_until(lambda: server.seen(CHANNEL) == ["You said: here"])
            await one.tell_owner("news")
            assert "news" in server.seen(dm_of(STRANGER))
        server.say("missed", user=STRANGER, tell=False)
        server.repeat()
        async with running_channel(channel(server, owners=()), gateway):
            await wait_until(lambda: "You said: missed" in server.seen(dm_of(STRANGER)))
    assert [message.content for message in gateway.sent] == ["here", "missed"]
    assert {*gateway.offered_codes} == {(CODE, STRANGER)} and len(server.seen(dm_of(STRANGER))) == 4


async def test_codes_that_do_not_count_link_nobody() -> None:
    """A wrong code gets one line however often it is tried, and a code in a channel is not even offered."""
    async with talking() as (server, gateway, _):
        gateway.codes.append(CODE)
        for guess in ("AAAA-AAAA", "bbbb bbbb"):
            server.say(guess, user=STRANGER)
        server.say(f"{ME} {CODE}", user=STRANGER, channel=CHANNEL)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
    (no_code,) = server.seen(dm_of(STRANGER))
    assert "does not count" in no_code and server.seen(CHANNEL) == []
    assert gateway.codes == [CODE] and gateway.linked == {} and len(gateway.sent) == 1
    assert [code for code, _ in gateway.offered_codes] == ["AAAA-AAAA", "bbbb bbbb"]


async def test_mentions_in_channels_and_threads_are_conversations() -> None:
    """A mention is answered in its thread, each thread is a conversation, and other talk is not heard."""
    async with talking() as (server, gateway, _):
        server.say("not for the bot", channel=CHANNEL)
        first = server.say(f"{ME} first", channel=CHANNEL)
        await wait_until(lambda: len(server.seen(CHANNEL)) == 1)
        server.say(f"{ME}, second", channel=CHANNEL, thread=first)
        server.say(f"third, {ME}", channel=PRIVATE)
        await wait_until(lambda: len(server.seen(CHANNEL)) == 2 and len(server.seen(PRIVATE)) == 1)
        assert [one.thread for one in server.shown(CHANNEL)] == [first, first]
        direct = server.say("direct")
        await wait_until(lambda: len(server.seen()) == 1)
        server.say("aside", thread=direct)
        server.say("direct again")
        await wait_until(lambda: len(server.seen()) == 3)
        threads = {one.text: one.thread for one in server.shown()}
    assert threads == {"You said: direct": "", "You said: aside": direct, "You said: direct again": ""}
    sent = {message.content: message.conversation for message in gateway.sent}
    assert list(sent) == ["first", "second", "third,", "direct", "aside", "direct again"]
    assert [sent[one] is not None for one in sent] == [False, True, False, False, False, True]


async def test_mentions_can_be_switched_off() -> None:
    """With ``mentions = false`` only direct messages are answered."""
    async with talking(mentions=False) as (server, gateway, _):
        server.say(f"{ME} hello", channel=CHANNEL)
        server.say("direct")
        await wait_until(lambda: server.seen() == ["You said: direct"])
    assert len(gateway.sent) == 1 and "users.conversations" not in server.calls


async def test_the_slash_command_has_the_commands_of_every_chat() -> None:
    """``/trunkline`` answers the owner alone, and reaches no agent. A message may have a command too."""
    async with talking() as (server, gateway, _):
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 1)
        wanted = ["status", "cost", "block", "block nobody", "stop", "approve", "", "/status", "block garden"]
        said = ""
        for text in wanted:
            command = server.command(text)
            await wait_until(lambda: command in server.said)  # noqa: B023 the wait ends in this iteration
            said += server.said[command] + "\n"
        server.say("hello garden")
        await wait_until(lambda: "You said: hello garden" in server.seen())
        server.say(f"{ME} /status")
        await wait_until(lambda: len(server.seen()) == 3)
    assert (
        said.count("scripted/model answers here") == 2
        and "Today, everything" in said
        and "main, garden" in said
    )
    assert "Here you talk with garden" in said and "no block nobody" in said and "Write the id" in said
    assert "/attach" in said and "answers here" in server.seen()[2]
    assert [(message.content, message.block) for message in gateway.sent] == [
        ("hello", None),
        ("hello garden", "garden"),
    ]


async def test_an_approval_has_buttons_until_it_is_decided() -> None:
    """A press decides; a decision elsewhere, also while the channel was down, takes the buttons away."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        first, second, third = (gateway.request_approval(f"Send mail {number}?") for number in range(3))
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: len(server.shown()) == 3 and server.sockets)
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


async def test_an_answer_of_slack_that_is_lost_repeats_nothing() -> None:
    """The connection breaks after Slack has sent or changed a post: it is shown once, in a thread too."""
    shown = anyio.Event()

    def growing(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text=f"To {message.content}: ")
        yield shown
        yield TextDelta(step=0, offset=99, text="done")
        yield TurnEnded(reason="stop")

    async with talking(growing) as (server, _, _):
        server.faults += [ScriptedFault(name, lost=True) for name in (SEND, SEND, EDIT)]
        server.say(f"{ME} one", channel=CHANNEL)
        server.say("two")
        await wait_until(lambda: server.seen(CHANNEL) == ["To one:"] and server.seen() == ["To two:"])
        shown.set()
        await wait_until(
            lambda: server.seen(CHANNEL) == ["To one: done"] and server.seen() == ["To two: done"]
        )
        server.say("three")
        await wait_until(lambda: server.seen() == ["To two: done", "To three: done"])
        assert server.faults == []
    assert server.seen(CHANNEL) == ["To one: done"]


@pytest.mark.parametrize("answer", [(429, "ratelimited"), (200, "ratelimited"), (500, "internal_error")])
@pytest.mark.parametrize("method", [SEND, EDIT, LIST, "apps.connections.open"])
async def test_a_passing_error_of_slack_loses_nothing(method: str, answer: tuple[int, str]) -> None:
    """After an error that passes, each message is answered once."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        server.faults.append(ScriptedFault(method, answer=answer))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_supervise, channel(server), gateway)
                server.say("hello")
                await wait_until(lambda: server.seen() == ["You said: hello"])
                tasks.cancel_scope.cancel()
    assert len(gateway.sent) == 1


async def _supervise(one: SlackChannel, gateway: ScriptedGateway) -> None:
    """Start the channel again after an error, as the channels worker does."""
    while True:
        try:
            await one.run(gateway)
        except Exception:
            await anyio.sleep(0.05)


@pytest.mark.parametrize("ends", [SlackServer.refresh, SlackServer.disconnect])
async def test_a_connection_that_ends_is_opened_again_without_a_gap(ends: object) -> None:
    """Slack asks for a new connection, or closes the old one: what is written meanwhile is answered, once."""
    async with talking() as (server, gateway, _):
        server.say("one")
        thread = server.say(f"{ME} begin", channel=CHANNEL)
        await wait_until(lambda: len(server.seen()) == 1 and len(server.seen(CHANNEL)) == 1)
        ends(server)  # type: ignore[operator]
        server.say("two")
        server.say("three", tell=False)
        server.say(f"{ME} four", channel=CHANNEL, thread=thread, tell=False)
        server.say(f"{ME} five", channel=PRIVATE, tell=False)
        server.say("not for the bot", channel=CHANNEL, tell=False)
        server.say(f"{ME} six", channel=FOREIGN, tell=False)
        await wait_until(lambda: len(server.seen()) == 3 and len(server.seen(PRIVATE)) == 1)
        await wait_until(lambda: server.seen(CHANNEL) == ["You said: begin", "You said: four"])
        assert server.connected == 2 and server.seen(FOREIGN) == []
    contents = sorted(message.content for message in gateway.sent)
    assert contents == ["begin", "five", "four", "one", "three", "two"]


async def test_a_start_reads_what_was_missed_and_nothing_old() -> None:
    """A channel that was off reads what came meanwhile; on its first start it answers nothing old."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        old = server.say("long ago", tell=False)
        shown = server.messages.pop((dm_of(OWNER), old))
        shown.ts = "1700000000.000001"
        server.messages[shown.channel, shown.ts] = shown
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: len(server.seen()) == 1)
        server.say("two", tell=False)
        begun = server.say("a thread of others", channel=CHANNEL, tell=False)
        server.say(f"{ME} three", channel=CHANNEL, thread=begun, tell=False)
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.seen() == ["You said: one", "You said: two"])
            await wait_until(lambda: server.seen(CHANNEL) == ["You said: three"])
    assert [message.content for message in gateway.sent] == ["one", "two", "three"]


async def test_of_two_processes_with_one_app_the_second_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The second process does not connect until the first ends, says who serves the app, and then goes on."""
    async with ScriptedGateway() as gateway, slack_server() as server, anyio.create_task_group() as tasks:
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: server.seen() == ["You said: one"])
            tasks.start_soon(channel(server).run, gateway)
            await wait_until(lambda: "this process waits" in caplog.text)
            assert server.connected == 1
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
        server.messages.pop((dm_of(OWNER), server.shown()[0].ts))
        ended.set()
        server.closed_to.add(OWNER)
        server.say("closed")
        await wait_until(lambda: server.calls.count(SEND) >= 2)
        server.closed_to.clear()
        server.say("open")
        await wait_until(lambda: server.seen() == ["To open: done"])


async def test_what_the_channel_cannot_read_is_said() -> None:
    """A file gets a sentence, and reaches no agent. Messages of bots, edits and unknown events are not answered."""
    async with talking() as (server, gateway, _):
        server.say("see", subtype="file_share", files=[{"id": "F1", "name": "a.png"}])
        server.say("joined", subtype="channel_join")
        server.say("edited", subtype="message_changed", hidden=True)
        server.say("beep", bot_id="B9")
        server._send("events_api", {"event": {"type": "what_is_this"}})
        server._send("interactive", {"type": "view_submission", "user": {"id": OWNER}})
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 2)
        await wait_until(lambda: not server.unconfirmed)
    assert "I cannot read this (file)" in server.seen()[0]
    assert [message.content for message in gateway.sent] == ["hello"]


async def test_the_owner_is_told_and_an_unreached_owner_is_an_error() -> None:
    """A notice reaches each owner; if none can be reached, the sender learns it. Before the start nothing is sent."""
    async with talking() as (server, gateway, one):
        server.say("hello")
        await wait_until(lambda: len(gateway.sent) == 1)
        await one.tell_owner("news")
        assert "news" in server.seen()
        server.closed_to.add(OWNER)
        with pytest.raises(Unavailable, match=r"channels\.slack\.owners"):
            await one.tell_owner("more news")
    with pytest.raises(Unavailable):
        await one.tell_owner("too late")


async def test_the_tokens_are_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the most talkative loggers, neither good calls nor refused tokens nor broken connections show them."""
    secrets = [BOT_TOKEN.rpartition("-")[2], APP_TOKEN.rpartition("-")[2]]
    caplog.set_level(1)
    for name in ("slack_sdk", "aiohttp", "asyncio", ""):
        monkeypatch.setattr(logging.getLogger(name), "level", 1)
    async with talking() as (server, _, one):
        server.faults.append(ScriptedFault(SEND, lost=True))
        server.say("hello")
        await wait_until(lambda: server.seen() == ["You said: hello"])
        assert not any(secret in repr(vars(one)) for secret in secrets)
    shown = ""
    for variable, token in (("SLACK_BOT_TOKEN", BOT_TOKEN), ("SLACK_APP_TOKEN", APP_TOKEN)):
        with monkeypatch.context() as patched:
            patched.setenv(variable, token + "B")
            async with ScriptedGateway() as gateway, slack_server() as server:
                with pytest.raises((ConfigError, ExceptionGroup)) as refused:
                    await channel(server).run(gateway)
        shown += f"{refused.value!r} {refused.value.__cause__!r}"
        assert f"refuses the token in {variable}: invalid_auth" in refusal(refused.value).sentence
    assert not any(secret in shown or secret in caplog.text for secret in secrets)
    assert "chat.postMessage" in caplog.text  # the loggers do show what is sent


@pytest.mark.parametrize("word", ["account_inactive", "token_revoked"])
async def test_a_token_that_is_revoked_while_the_channel_runs_ends_it(word: str) -> None:
    """The channel ends with an error that names the setting, instead of trying for ever."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused, anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(channel(server).run, gateway)
                await wait_until(lambda: server.sockets)
                server.signed_out = word
                server.say("hello")
    error = refusal(refused.value)
    assert f"channels.slack.token: Slack refuses the token in SLACK_BOT_TOKEN: {word}" in error.sentence


async def test_a_permission_that_is_missing_is_named() -> None:
    """The error names the scope, and where to add it."""
    async with ScriptedGateway() as gateway, slack_server() as server:
        server.scopes = server.scopes.replace("im:history,", "")
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    error = refusal(refused.value)
    assert "im:history" in error.sentence and "channels:history" not in error.sentence
    assert "Reinstall" in error.hint


@pytest.mark.parametrize("variable", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
@pytest.mark.parametrize(("value", "sentence"), [("", "is not set"), ("hello", "is not such a token")])
async def test_a_missing_token_is_named_with_its_setting(
    variable: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting and the variable, and not the value."""
    monkeypatch.setenv(variable, value)
    field = "app_token" if "APP" in variable else "token"
    async with ScriptedGateway() as gateway:
        with pytest.raises(ConfigError, match=rf"channels\.slack\.{field}.*{variable}") as refused:
            await SlackChannel(SlackSettings(owners=(OWNER,))).run(gateway)
    assert sentence in refused.value.sentence and (not value or value not in refused.value.sentence)


async def test_an_address_that_is_none_is_refused_with_its_setting() -> None:
    """A wrong api_url is found when the settings are read."""
    with pytest.raises(ConfigError, match=r"channels\.slack\.api_url"):
        SlackSettings(api_url="slack")
