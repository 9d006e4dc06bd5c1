"""The Telegram channel on a scripted gateway: what people see, and what Telegram's errors lead to."""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import STATE_PREFIX, AccountState, CostSum, CostTotals
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import FeedEvent, TextDelta, TurnEnded
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.turns.feed_messages import TextReset
from trunkline_telegram.channel import TelegramChannel
from trunkline_telegram.settings import TelegramSettings

from .bot_api_server import (
    CONFLICT,
    OWNER,
    QUICK,
    STRANGER,
    TOKEN,
    BotApiServer,
    bot_api_server,
    failure,
)

pytestmark = pytest.mark.anyio

GROUP = -100_777


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)


def channel(server: BotApiServer, **more: object) -> TelegramChannel:
    """A channel that edits and polls quickly."""
    fast: dict[str, object] = {
        "owners": (OWNER,),
        "edit_seconds": 0.02,
        "poll_seconds": 5,
    }
    times = replace(QUICK, silent=more.pop("silent_seconds", QUICK.silent))  # type: ignore[type-var]
    return TelegramChannel(TelegramSettings(api_url=server.url, **{**fast, **more}), times)  # type: ignore[arg-type]


@asynccontextmanager
async def talking(
    answer: object = None, **more: object
) -> AsyncIterator[tuple[BotApiServer, ScriptedGateway, TelegramChannel]]:
    """A server, a gateway and the running channel between them."""
    gateway = ScriptedGateway(answer) if answer else ScriptedGateway(blocks=("main", "garden"))  # type: ignore[arg-type]
    async with gateway, bot_api_server() as server:
        one = channel(server, **more)
        async with running_channel(one, gateway):
            yield server, gateway, one


def long_answer(message: SendMessage) -> Iterable[FeedEvent]:
    """An answer of three posts with a code block over a border, and a reset step before it."""
    yield TextDelta(step=0, offset=0, text="A beginning that is withdrawn. " * 200)
    yield TextReset(step=0)
    yield TextDelta(
        step=0,
        offset=0,
        text="**Bold** 😀 words. " * 200 + "\n\n```python\n" + "x = 1\n" * 900 + "```\n\nEnd.",
    )
    yield TurnEnded(reason="stop")


async def test_a_long_answer_is_shown_in_pieces_that_telegram_accepts() -> None:
    """Pieces have at most 4096 units, a code block goes on in the next piece, and withdrawn text is gone."""
    async with talking(long_answer) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and server.seen()[-1].endswith("End."))
        shown = server.shown()
    assert "withdrawn" not in "".join(server.seen())
    assert sum(one.text.count("x = 1") for one in shown) == 900
    assert all(len(one.text.encode("utf-16-le")) // 2 <= 4096 for one in shown)
    code = [one for one in shown if "x = 1" in one.text]
    assert len(code) > 1 and all(any(entity["type"] == "pre" for entity in one.entities) for one in code)


async def test_updates_that_telegram_repeats_are_answered_once() -> None:
    """The same updates after a restart of the channel begin no turn and show nothing."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        async with running_channel(channel(server), gateway):
            server.say("one")
            server.say("/help")
            await wait_until(lambda: len(server.seen()) == 2)
        before = server.seen()
        server.repeat()
        async with running_channel(channel(server), gateway):
            server.say("two")
            await wait_until(lambda: "You said: two" in server.seen())
    assert [message.content for message in gateway.sent] == ["one", "two"]
    assert gateway.sent[1].conversation is not None
    assert server.seen() == [*before, "You said: two"]


CODE = "7KQ4-XM2P"


async def test_a_pairing_code_links_its_sender_as_the_owner() -> None:
    """Whoever sends the code is served from then on, in groups too, is shown the calls that wait, and gets notices."""
    async with talking(owners=()) as (server, gateway, one):
        gateway.codes.append(CODE)
        asked = gateway.request_approval("Send the mail?")
        server.say(f"/start {CODE}", user=STRANGER)
        await wait_until(lambda: len(server.seen(STRANGER)) == 2)
        assert any("linked as the owner" in text for text in server.seen(STRANGER))
        press = server.press(f"deny {asked.id}", user=STRANGER)
        await wait_until(lambda: press in server.pressed and gateway.decided != [])
        server.say("hello", user=STRANGER)
        server.say("@trunk_bot here", user=STRANGER, chat=GROUP)
        await wait_until(lambda: server.seen(GROUP) == ["You said: here"])
        await one.tell_owner("news")
        assert "news" in server.seen(STRANGER)
    assert [message.content for message in gateway.sent] == ["hello", "here"]
    assert gateway.offered_codes == [(CODE, str(STRANGER))]


async def test_a_code_that_is_delivered_again_reaches_no_agent() -> None:
    """Telegram repeats the update of the code after a restart: its sender stays linked, and nothing more is said."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        gateway.codes.append(CODE)
        async with running_channel(channel(server, owners=()), gateway):
            server.say(CODE, user=STRANGER)
            await wait_until(lambda: len(server.seen(STRANGER)) == 1)
        server.repeat()
        async with running_channel(channel(server, owners=()), gateway):
            server.say("hello", user=STRANGER)
            await wait_until(lambda: "You said: hello" in server.seen(STRANGER))
    assert len(server.seen(STRANGER)) == 2 and len(gateway.sent) == 1


async def test_codes_that_do_not_count_link_nobody() -> None:
    """A wrong code gets one line however often it is tried, and a code in a group is not even offered."""
    async with talking() as (server, gateway, _):
        gateway.codes.append(CODE)
        for guess in ("AAAA-AAAA", "bbbb bbbb", "/start CCCCCCCC", "/new DDDDDDDD"):
            server.say(guess, user=STRANGER)
        server.say(f"@trunk_bot {CODE}", user=STRANGER, chat=GROUP)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
    no_code, private = server.seen(STRANGER)
    assert "does not count" in no_code and "private" in private
    (refused,) = server.seen(GROUP)
    assert "never in a group" in refused
    assert gateway.codes == [CODE] and gateway.linked == {} and len(gateway.sent) == 1
    assert [code for code, _ in gateway.offered_codes] == ["AAAA-AAAA", "bbbb bbbb", "CCCCCCCC"]


async def test_whoever_is_unlinked_is_a_stranger_again() -> None:
    """After a link was removed, its sender begins no turn and decides nothing, without a restart."""
    async with talking(owners=()) as (server, gateway, _):
        gateway.codes.append(CODE)
        server.say(CODE, user=STRANGER)
        await wait_until(lambda: gateway.linked and len(server.seen(STRANGER)) == 1)
        gateway.linked.clear()
        asked = gateway.request_approval("Send the mail?")
        server.say("hello", user=STRANGER)
        press = server.press(f"approve {asked.id}", user=STRANGER)
        await wait_until(lambda: press in server.pressed)
    assert server.pressed[press] == "Only the owner decides."
    assert gateway.sent == [] and gateway.decided == []


async def test_a_stranger_gets_one_line_and_costs_nothing() -> None:
    """A stranger is told once that the bot is private, begins no turn, decides nothing, and is not heard in groups."""
    async with talking() as (server, gateway, _):
        asked = gateway.request_approval("Send the mail?")
        for text in ("hello", "/help", "approve " + asked.id):
            server.say(text, user=STRANGER)
        server.say("@trunk_bot hello", user=STRANGER, chat=GROUP)
        press = server.press(f"approve {asked.id}", user=STRANGER)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
        await wait_until(lambda: press in server.pressed)
    (line,) = server.seen(STRANGER)
    assert "private" in line and "trunkline channels pair telegram" in line
    assert server.pressed[press] == "Only the owner decides." and gateway.decided == []
    assert [message.content for message in gateway.sent] == ["mine"] and server.seen(GROUP) == []


async def test_in_groups_the_owner_is_heard_by_mention_reply_and_topic() -> None:
    """A mention or a reply is answered in its topic, each topic is a conversation, and other talk is not heard."""
    own = {"message_id": 1, "date": 1, "chat": {"id": GROUP, "type": "supergroup", "title": "g"}}
    reply = {**own, "from": {"id": 4242, "is_bot": True, "first_name": "Bot"}}
    async with talking() as (server, gateway, _):
        server.say("not for the bot", chat=GROUP)
        server.say("@trunk_bot first", chat=GROUP, thread=7)
        server.say("second", chat=GROUP, thread=8, reply_to_message=reply)
        server.say("third, @Trunk_Bot", chat=GROUP, thread=7)
        server.say("/new@other_bot", chat=GROUP)
        await wait_until(lambda: len(server.seen(GROUP)) == 3 and "third" in server.seen(GROUP)[2])
        answers = {one.text: (one.thread, one.reply_to is not None) for one in server.shown(GROUP)}
    assert answers == {
        "You said: first": (7, True), "You said: second": (8, True), "You said: third,": (7, True),
    }  # fmt: skip
    first, second, third = (gateway.sent[number].conversation for number in range(3))
    assert first is None and second is None and third is not None


async def test_commands_are_set_and_answered() -> None:
    """The commands are in Telegram's menu; each answers, and none of them reaches an agent."""
    async with talking() as (server, gateway, _):
        usage = Usage(input_tokens=12_000, output_tokens=800)
        total = CostSum(key="total", requests=4, usage=usage, cost=12_300)
        gateway.spent = CostTotals(rows=(), total=total, unpriced=("local/tiny",))
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 1)
        for command in (
            "/status",
            "/cost",
            "/block",
            "/block garden",
            "/block nobody",
            "/stop",
            "/what",
            "/approve",
        ):
            server.say(command)
        await wait_until(lambda: len(server.seen()) == 9)
        server.say("hello garden")
        await wait_until(lambda: "You said: hello garden" in server.seen())
        text = "\n".join(server.seen())
    assert [command["command"] for command in server.commands][:3] == ["new", "block", "model"]
    assert (
        "scripted/model answers here" in text
        and "$0.0123 for 4 requests (12,000 tokens in, 800 out)" in text
        and "main, garden" in text
    )
    assert "Here you talk with garden" in text and "no block nobody" in text and "no command /what" in text
    assert [(message.content, message.block) for message in gateway.sent] == [
        ("hello", None),
        ("hello garden", "garden"),
    ]
    assert gateway.sent[1].conversation is None


async def test_stop_ends_the_running_answer() -> None:
    """/stop cancels the turn of its chat, and what was shown stays."""

    def forever(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text="It begins")
        yield anyio.Event()

    async with talking(forever) as (server, gateway, _):
        server.say("go")
        await wait_until(lambda: server.seen() == ["It begins"])
        server.say("/stop")
        await wait_until(lambda: gateway.cancelled and "Stopping." in server.seen())
    assert "It begins" in server.seen()


async def test_an_approval_has_buttons_until_it_is_decided() -> None:
    """A press decides; a decision elsewhere, also while the channel was down, takes the buttons away."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
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
            await wait_until(lambda: press in server.pressed and not server.shown()[0].buttons)
            gateway.settle(second, allow=True, by="terminal")
            await wait_until(lambda: not server.shown()[1].buttons)
        gateway.settle(third, allow=True, by="terminal")
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: not server.shown()[2].buttons)
        assert len(server.shown()) == 3
    assert gateway.decided == [(first.turn, first.call, False)]
    assert "Denied" in server.pressed[press] and "Denied by" in server.seen()[0]
    assert "terminal" in server.seen()[1] and "no longer waits" in server.seen()[2]


@pytest.mark.parametrize("lost", ["sendMessage", "editMessageText"])
async def test_an_answer_of_telegram_that_is_lost_repeats_nothing(lost: str) -> None:
    """The connection breaks after Telegram has acted: the post is found, and is shown once."""
    async with talking() as (server, _, _):
        server.faults.append(ScriptedFault(lost, lost=True))
        server.say("one")
        server.say("two")
        await wait_until(lambda: {"You said: one", "You said: two"} <= {*server.seen()})
        await anyio.sleep(0.3)
    assert sorted(server.seen()) == ["You said: one", "You said: two"]


@pytest.mark.parametrize(
    "answer",
    [
        failure(429, "Too Many Requests: retry after 1", {"retry_after": 0.1}),  # Telegram says whole seconds
        failure(502, "Bad Gateway"),
        failure(500, "Internal Server Error"),
    ],
)
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText", "getUpdates", "getMe", "setMyCommands"])
async def test_a_passing_error_of_telegram_loses_nothing(
    method: str, answer: tuple[int, dict[str, object]]
) -> None:
    """After an error that passes, each message is answered once."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        one = channel(server)
        server.faults.append(ScriptedFault(method, answer=answer))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_supervise, one, gateway)
                server.say("hello")
                await wait_until(lambda: server.seen() == ["You said: hello"])
                tasks.cancel_scope.cancel()
        assert server.seen() == ["You said: hello"]
    assert len(gateway.sent) == 1


async def _supervise(one: TelegramChannel, gateway: ScriptedGateway) -> None:
    """Start the channel again after an error, as the channels worker does."""
    while True:
        try:
            await one.run(gateway)
        except Exception:
            await anyio.sleep(0.05)


async def test_a_conflict_with_another_poller_heals_itself(caplog: pytest.LogCaptureFixture) -> None:
    """While another program polls the bot this is logged; afterwards messages are answered."""
    async with talking() as (server, gateway, _):
        server.faults.append(ScriptedFault("getUpdates", answer=failure(*CONFLICT)))
        await wait_until(lambda: "another program polls this bot" in caplog.text)
        (record,) = await gateway.records().list(STATE_PREFIX, AccountState)
        assert record.value.state == "failing" and "another program polls it" in record.value.text
        server.say("hello")
        await wait_until(lambda: server.seen() == ["You said: hello"])
        server.say("again")
        await wait_until(lambda: len(server.seen()) == 2)
        (record,) = await gateway.records().list(STATE_PREFIX, AccountState)
    assert len(gateway.sent) == 2 and record.value.state == "serving"


async def test_a_poller_that_hangs_is_reported() -> None:
    """Without an answer of Telegram for a while the account counts as failing, and as serving when one comes."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        one = channel(server, poll_seconds=50, silent_seconds=0.3)
        async with running_channel(one, gateway):
            await wait_until(lambda: "getUpdates" in server.calls)
            await wait_for_state(gateway, "failing", "nothing was heard")
            server.say("hello")
            await wait_for_state(gateway, "serving", "receives messages")


async def test_a_refused_token_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of the account says that Telegram refuses the token, for doctor and top."""
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN + "WRONG")
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        with pytest.raises((ConfigError, ExceptionGroup)):
            await channel(server).run(gateway)
        await wait_for_state(gateway, "failing", "Telegram refuses the bot's token")


async def wait_for_state(gateway: ScriptedGateway, state: str, words: str) -> None:
    """Wait until the account has this state."""
    with anyio.fail_after(60):
        while True:
            records = await gateway.records().list(STATE_PREFIX, AccountState)
            if any(one.value.state == state and words in one.value.text for one in records):
                return
            await anyio.sleep(0.02)


async def test_of_two_processes_with_one_bot_the_second_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The second process asks Telegram nothing until the first ends, says who serves the bot, and then goes on."""
    async with ScriptedGateway() as gateway, bot_api_server() as server, anyio.create_task_group() as tasks:
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: server.seen() == ["You said: one"])
            tasks.start_soon(channel(server).run, gateway)
            await wait_until(lambda: "this process waits" in caplog.text)
            signed_in = server.calls.count("getMe")
            server.say("two")
            await wait_until(lambda: len(server.seen()) == 2)
            assert server.calls.count("getMe") == signed_in
            states = await gateway.records().list(STATE_PREFIX, AccountState)
            assert {one.value.state for one in states} == {"serving", "waiting"}
        server.say("three")
        with anyio.fail_after(20):
            await wait_until(lambda: server.seen()[2:] == ["You said: three"])
        tasks.cancel_scope.cancel()


async def test_a_group_that_moves_is_answered_in_its_new_place() -> None:
    """The answer to a question in the former group is in the supergroup, which continues the conversation."""
    group = -55
    async with talking() as (server, gateway, _):
        server.say("@trunk_bot one", chat=group)
        await wait_until(lambda: server.seen(group) == ["You said: one"])
        server.say("@trunk_bot two", chat=group)
        server.migrate(group, GROUP)
        server.say("@trunk_bot three", chat=GROUP)
        await wait_until(
            lambda: {"You said: two", "You said: three"} <= {*server.seen(GROUP), *server.seen(group)}
        )
    assert gateway.sent[2].conversation == gateway.sent[1].conversation is not None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Bad Request: TOPIC_CLOSED"),
        (400, "Bad Request: chat not found"),
        (403, "Forbidden: the group chat was deleted"),
    ],
)
async def test_a_closed_topic_and_a_deleted_chat_end_quietly(
    status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer that Telegram refuses for good is logged once and not tried again; the next one is shown."""
    async with talking() as (server, _, _):
        server.faults.append(ScriptedFault("sendMessage", answer=failure(status, words)))
        server.say("lost")
        await wait_until(lambda: words.partition(": ")[2].lower() in caplog.text.lower())
        server.say("open")
        await wait_until(lambda: server.seen() == ["You said: open"])
    assert caplog.text.count("an answer is not shown") == 1


async def test_a_blocked_bot_and_a_deleted_answer_end_quietly() -> None:
    """Nothing is sent to whoever blocked the bot, a deleted answer stays deleted, and others are answered."""
    ended = anyio.Event()

    def slow(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text=f"To {message.content}: ")
        if message.content == "delete":
            yield ended
        yield TextDelta(step=0, offset=99, text="done")
        yield TurnEnded(reason="stop")

    async with talking(slow) as (server, _, _):
        server.say("delete")
        await wait_until(lambda: server.seen() == ["To delete: "] or server.seen() == ["To delete:"])
        server.messages.pop((OWNER, server.shown()[0].id))
        ended.set()
        server.blocked.add(OWNER)
        server.say("blocked")
        await wait_until(lambda: server.calls.count("sendMessage") >= 2)
        server.blocked.clear()
        server.say("open")
        await wait_until(lambda: server.seen() == ["To open: done"])


async def test_what_the_channel_cannot_read_is_said() -> None:
    """A contact gets a sentence, and reaches no agent. An update that nobody knows gets nothing."""
    async with talking() as (server, gateway, _):
        server.say(None, contact={"phone_number": "1", "first_name": "Ada"})
        server._update({"what_is_this": {}})
        server._update({"message": {"message_id": "no number"}})
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 2)
    assert "I cannot read this (contact)" in server.seen()[0] and len(gateway.sent) == 1


async def test_styles_that_telegram_refuses_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """An answer is shown without its styles rather than not at all."""

    def bold(message: SendMessage) -> Iterable[FeedEvent]:
        yield TextDelta(step=0, offset=0, text="**bold**")
        yield TurnEnded(reason="stop")

    async with talking(bold) as (server, _, _):
        server.faults.append(
            ScriptedFault("sendMessage", answer=failure(400, "Bad Request: can't parse entities"))
        )
        server.say("go")
        await wait_until(lambda: server.seen() == ["bold"])
    assert "without them" in caplog.text


async def test_the_owner_is_told_and_an_unreached_owner_is_an_error() -> None:
    """A notice reaches each owner; if none can be reached, the sender learns it. Before the start nothing is sent."""
    async with talking(owners=(OWNER, 3003)) as (server, _, one):
        await wait_until(lambda: "getUpdates" in server.calls)
        await one.tell_owner("news")
        assert server.seen() == ["news"] and server.seen(3003) == []
        server.blocked.add(OWNER)
        with pytest.raises(Unavailable, match="blocked"):
            await one.tell_owner("more news")
    with pytest.raises(Unavailable):
        await one.tell_owner("too late")


async def test_the_token_is_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every logger at its most talkative, neither good calls nor refused tokens nor broken connections show it."""
    secret = TOKEN.partition(":")[2]
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "telegram", "asyncio", ""):
        logging.getLogger(name).setLevel(logging.DEBUG)
    async with talking() as (server, _, one):
        server.faults.append(ScriptedFault("sendMessage", lost=True))
        server.faults.append(ScriptedFault("getUpdates", answer=(500, {"text": "no JSON of the Bot API"})))
        server.say("hello")
        await wait_until(lambda: server.seen() == ["You said: hello"])
        assert secret not in repr(vars(one))
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN + "WRONG")
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    chain = "".join(map(str, _chain(refused.value)))
    assert "refuses the bot's token in TELEGRAM_BOT_TOKEN" in chain
    assert secret not in chain and secret not in caplog.text
    assert "bot4242:hidden/" in caplog.text  # the loggers do show addresses
    assert secret not in str([record.args for record in caplog.records])


def _chain(first: BaseException) -> Iterator[str]:
    """The texts of an error, of its causes and contexts, and of the errors in groups."""
    waiting: list[BaseException] = [first]
    known: set[int] = set()
    while waiting:
        error = waiting.pop()
        if id(error) not in known:
            known.add(id(error))
            yield f"{type(error).__name__} {error.args}"
            inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
            waiting += [one for one in (error.__cause__, error.__context__, *inner) if one is not None]


@pytest.mark.parametrize(
    ("value", "sentence"), [("", "is not set"), ("hello", "is not a token"), ("12:short", "is not a token")]
)
async def test_a_missing_token_is_named_with_its_setting(
    value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting and the variable, and not the value."""
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", value)
    async with ScriptedGateway() as gateway:
        with pytest.raises(ConfigError, match=r"channels\.telegram\.token") as refused:
            await TelegramChannel(TelegramSettings(owners=(OWNER,))).run(gateway)
    assert sentence in refused.value.sentence and (not value or value not in refused.value.sentence)


async def test_an_address_that_is_none_is_refused_with_its_setting() -> None:
    """A wrong api_url is found when the settings are read."""
    with pytest.raises(ConfigError, match=r"channels\.telegram\.api_url"):
        TelegramSettings(api_url="telegram")
