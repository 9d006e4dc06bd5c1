"""The Matrix channel on a scripted gateway: what people see in their rooms."""

from collections.abc import Iterable, Iterator

import anyio
import pytest

from trunkline.api.channel import STATE_PREFIX, AccountState
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import FeedEvent, TextDelta, TurnEnded
from trunkline.contracts.turns.feed_messages import TextReset

from .homeserver import BOT, DIRECT, GROUP, homeserver
from .running_channel import channel, talking

pytestmark = pytest.mark.anyio


def long_answer(message: SendMessage) -> Iterable[FeedEvent]:
    """An answer of several posts with a code block over a border, and a reset step before it."""
    yield TextDelta(step=0, offset=0, text="A beginning that is withdrawn. " * 900)
    yield TextReset(step=0)
    yield TextDelta(
        step=0,
        offset=0,
        text="**Bold** 😀 a & b. " * 500 + "\n\n```python\n" + "x = 1\n" * 2000 + "```\n\nEnd.",
    )
    yield TurnEnded(reason="stop")


async def test_a_long_answer_is_shown_in_pieces_that_a_homeserver_accepts() -> None:
    """An event has at most 65 536 bytes, a code block goes on in the next piece, and withdrawn text is gone."""
    async with talking(long_answer) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and server.seen()[-1].endswith("End."))
        texts, shown = server.seen(), server.shown()
    assert "withdrawn" not in "".join(texts)
    assert sum(text.count("x = 1") for text in texts) == 2000
    html = [one.content.get("formatted_body", "") for one in shown]
    assert html[0].startswith("<strong>Bold</strong> 😀 a &amp; b.") and texts[0].startswith("Bold 😀 a & b.")
    assert sum('<pre><code class="language-python">' in one for one in html) > 1


async def test_styles_are_drawn_and_nothing_else_is_read_as_one() -> None:
    """Styles become HTML. What the answer writes as HTML is shown as it is, and nobody is mentioned."""

    def tricky(message: SendMessage) -> Iterable[FeedEvent]:
        text = (
            "a *b **c*** `d<` ~~e~~ [f](https://e.example/f?a=1&b) [g](irc://x) <script>@room\n\n"
            "> quoted _q_\n\n- item\n"
        )
        yield TextDelta(step=0, offset=0, text=text)
        yield TurnEnded(reason="stop")

    async with talking(tricky) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and "item" in server.seen()[0])
        (shown,) = server.shown()
    assert shown.content["formatted_body"] == (
        "a <em>b <strong>c</strong></em> <code>d&lt;</code> <del>e</del> "
        '<a href="https://e.example/f?a=1&amp;b">f</a> g &lt;script&gt;@room'
        "<blockquote>quoted <em>q</em></blockquote>• item"
    )
    assert shown.text.startswith("a b c d< e f g <script>@room")


async def test_what_styles_make_too_long_is_shown_without_them() -> None:
    """An answer of many short styles stays within the size of an event."""

    def dense(message: SendMessage) -> Iterable[FeedEvent]:
        yield TextDelta(step=0, offset=0, text="**a** *b* " * 1_900)
        yield TurnEnded(reason="stop")

    async with talking(dense) as (server, _, _):
        server.say("go")
        await wait_until(lambda: server.seen() and sum(text.count("a") for text in server.seen()) == 1_900)
        assert "formatted_body" not in server.shown()[0].content


async def test_messages_that_are_delivered_again_are_answered_once() -> None:
    """An answer of the homeserver that is lost is asked for again, also after a restart. Each message counts once."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.calls.count("sync") >= 2)
            server.faults += [ScriptedFault(name, lost=True) for name in ("sync", "sync")]
            server.say("one")
            server.say("/help")
            await wait_until(lambda: len(server.seen()) == 2 and not server.faults)
        server.say("two")
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: "You said: two" in server.seen())
    assert len(server.seen()) == 3
    assert [message.content for message in gateway.sent] == ["one", "two"]
    assert gateway.sent[1].conversation is not None


async def test_a_message_is_taken_again_until_the_gateway_has_it() -> None:
    """While the gateway is away the position stays; who starts next takes the message."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.calls.count("sync") >= 2)
            gateway.away = True
            server.say("hello")
            await wait_until(lambda: not server.waiting)
        gateway.away = False
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.seen() == ["You said: hello"])
    assert [message.content for message in gateway.sent] == ["hello"]


async def test_a_gap_of_the_homeserver_is_filled() -> None:
    """A homeserver leaves out what is more than a page: it is read from the room, in its order, once."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        server.timeline_limit = 2
        async with running_channel(channel(server), gateway):
            server.say("0")
            await wait_until(lambda: server.seen() == ["You said: 0"])
        for number in range(1, 10):
            server.say(str(number))
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: len(server.seen()) == 10)
    assert [message.content for message in gateway.sent] == [str(number) for number in range(10)]


async def test_the_first_start_answers_nothing_old() -> None:
    """What was written long before the first start is left alone."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        server.say("long ago")
        server.rooms[DIRECT].events[-1]["origin_server_ts"] = 1_700_000_000_000
        async with running_channel(channel(server), gateway):
            server.say("now")
            await wait_until(lambda: server.seen() == ["You said: now"])
    assert [message.content for message in gateway.sent] == ["now"]


async def test_rooms_and_threads_are_conversations() -> None:
    """A mention is answered as a reply, each thread is a conversation, and other talk in a group is not heard."""
    async with talking() as (server, gateway, _):
        server.say("not for the account", room=GROUP)
        first = server.say("Agent: first", room=GROUP)
        server.say("second", room=GROUP, **{"m.mentions": {"user_ids": [BOT]}})
        await wait_until(lambda: len(server.seen(GROUP)) == 2)
        replied = server.shown(GROUP)[0].content["m.relates_to"]["m.in_reply_to"]
        server.say(f"{BOT} third", room=GROUP, thread=first)
        await wait_until(lambda: len(server.seen(GROUP)) == 3)
        direct = server.say("direct")
        await wait_until(lambda: len(server.seen()) == 1)
        server.say("aside", thread=direct)
        await wait_until(lambda: len(server.seen()) == 2)
        server.say(
            "> <@me:example.org> old\n> words\n\nagain",
            **{"m.relates_to": {"m.in_reply_to": {"event_id": direct}}},
        )
        await wait_until(lambda: len(server.seen()) == 3)
        threads = {one.text: one.thread for one in (*server.shown(GROUP), *server.shown())}
    assert replied == {"event_id": first}
    assert threads == {
        "You said: first": "", "You said: second": "", "You said: third": first,
        "You said: direct": "", "You said: aside": direct, "You said: again": "",
    }  # fmt: skip
    sent = {message.content: message.conversation for message in gateway.sent}
    assert list(sent) == ["first", "second", "third", "direct", "aside", "again"]
    assert [sent[one] is not None for one in sent] == [False, True, False, False, False, True]


async def test_mentions_can_be_switched_off() -> None:
    """With ``mentions = false`` only rooms of two are answered."""
    async with talking(mentions=False) as (server, gateway, _):
        server.say("Agent: hello", room=GROUP)
        server.say("direct")
        await wait_until(lambda: server.seen() == ["You said: direct"])
    assert len(gateway.sent) == 1


async def test_the_commands_of_every_chat_are_answered() -> None:
    """Commands answer the owner, and reach no agent. In a group the account must be addressed."""
    async with talking() as (server, gateway, _):
        wanted = ["/status", "/cost", "/block nobody", "/stop", "/approve", "/help", "/block garden"]
        for number, text in enumerate(wanted, 1):
            server.say(text)
            await wait_until(lambda: len(server.seen()) == number)  # noqa: B023 the wait ends in this iteration
        server.say("hello garden")
        await wait_until(lambda: "You said: hello garden" in server.seen())
        server.say("Agent, /status", room=GROUP)
        await wait_until(lambda: len(server.seen(GROUP)) == 1)
        said = "\n".join(server.seen())
    assert "Today, everything" in said or "no conversation" in said
    assert "Here you talk with garden" in said and "no block nobody" in said and "/attach" in said
    assert "answers here" in server.seen(GROUP)[0]
    assert [(message.content, message.block) for message in gateway.sent] == [("hello garden", "garden")]


async def test_an_answer_of_the_homeserver_that_is_lost_repeats_nothing() -> None:
    """The connection breaks after the homeserver has sent or changed a post: it is shown once, in a thread too."""
    shown = anyio.Event()

    def growing(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text=f"To {message.content}: ")
        yield shown
        yield TextDelta(step=0, offset=99, text="done")
        yield TurnEnded(reason="stop")

    async with talking(growing) as (server, _, _):
        server.faults += [ScriptedFault(name, lost=True) for name in ("send", "send", "edit")]
        thread = server.say("two")
        server.say("one", thread=thread)
        await wait_until(lambda: sorted(server.seen()) == ["To one:", "To two:"])
        shown.set()
        await wait_until(lambda: sorted(server.seen()) == ["To one: done", "To two: done"])
        server.say("three")
        await wait_until(lambda: server.seen()[2:] == ["To three: done"])
        assert server.faults == []


LIMITED = (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "slow down", "retry_after_ms": 10})
BROKEN = (502, {})


@pytest.mark.parametrize("answer", [LIMITED, BROKEN], ids=["limited", "broken"])
@pytest.mark.parametrize("name", ["send", "edit", "sync", "whoami", "members"])
async def test_a_passing_error_of_the_homeserver_loses_nothing(
    name: str, answer: tuple[int, dict[str, object]]
) -> None:
    """After an error that passes, each message is answered once."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        server.faults.append(ScriptedFault(name, answer=answer))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_supervise, channel(server), gateway)
                server.say("hello")
                await wait_until(lambda: server.seen() == ["You said: hello"])
                tasks.cancel_scope.cancel()
    assert len(gateway.sent) == 1


async def _supervise(one: object, gateway: ScriptedGateway) -> None:
    """Start the channel again after an error, as the channels worker does."""
    while True:
        try:
            await one.run(gateway)  # type: ignore[attr-defined]
        except Exception:
            await anyio.sleep(0.05)


async def test_a_rate_limit_is_kept() -> None:
    """Growing answers wait as long as the homeserver asks for, and are complete at their end."""

    def growing(message: SendMessage) -> Iterator[object]:
        for number in range(20):
            yield TextDelta(step=0, offset=number, text=f"{number} ")
        yield TextDelta(step=0, offset=99, text="done")
        yield TurnEnded(reason="stop")

    async with talking(growing) as (server, _, _):
        server.burst, server.seconds = 2, 0.2
        for number in range(4):
            server.say("go", thread=f"$thread{number}")
        await wait_until(lambda: [text.endswith("done") for text in server.seen()] == 4 * [True])


async def test_of_two_processes_with_one_account_the_second_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The second process asks for nothing until the first ends, says who serves the account, and then goes on."""
    async with ScriptedGateway() as gateway, homeserver() as server, anyio.create_task_group() as tasks:
        async with running_channel(channel(server), gateway):
            server.say("one")
            await wait_until(lambda: server.seen() == ["You said: one"])
            tasks.start_soon(channel(server).run, gateway)
            await wait_until(lambda: "this process waits" in caplog.text)
            assert server.calls.count("whoami") == 1
            states = await gateway.records().list(STATE_PREFIX, AccountState)
            assert {one.value.state for one in states} == {"serving", "waiting"}
        server.say("three")
        with anyio.fail_after(60):
            await wait_until(lambda: "You said: three" in server.seen())
        tasks.cancel_scope.cancel()


async def test_a_deleted_answer_stays_deleted() -> None:
    """An edit of what a person deleted shows nothing, and the next message is answered."""
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
        server.remove(DIRECT, server.shown()[0].id)
        ended.set()
        server.say("open")
        await wait_until(lambda: server.seen() == ["To open: done"])


async def test_what_the_channel_cannot_read_is_said() -> None:
    """Stickers, polls and edits get a sentence and reach no agent. Automatic messages and malformed events get none."""
    async with talking() as (server, gateway, _):
        server.say("a cat", kind="m.sticker")
        server.say("when?", kind="org.matrix.msc3381.poll.start")
        first = server.say("unseen", kind="m.room.name")
        for text in ("* corrected", "* corrected again"):
            server.say(text, **{"m.relates_to": {"rel_type": "m.replace", "event_id": first}})
        server.say("beep", msgtype="m.notice")
        server.say(3, **{"m.relates_to": "x"})  # type: ignore[arg-type]
        server.say("hello")
        await wait_until(lambda: "You said: hello" in server.seen())
        await wait_until(lambda: len(server.seen()) == 4)
    said = server.seen()
    assert sum("I cannot read this (sticker)" in text or "(poll)" in text for text in said) == 2
    assert sum("what you change" in text for text in said) == 1
    assert [message.content for message in gateway.sent] == ["hello"]
