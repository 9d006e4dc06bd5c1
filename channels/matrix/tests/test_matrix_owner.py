"""The owner, strangers and other people: who is answered, who decides, and what is said where nobody else reads."""

import logging

import anyio
import pytest

from trunkline import ConfigError, Unavailable
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline_matrix.channel import MatrixChannel
from trunkline_matrix.settings import MatrixSettings

from .homeserver import BOT, DIRECT, GROUP, OWNER, STRANGER, THIRD, TOKEN, homeserver
from .running_channel import channel, refusal, talking

pytestmark = pytest.mark.anyio

CODE = "7KQ4-XM2P"
NEW, OTHER = "!new:other.org", "!other:other.org"


async def test_a_stranger_gets_one_line_and_costs_nothing() -> None:
    """A stranger is told once that the account is private, begins no turn, decides nothing, and enters no room."""
    async with talking() as (server, gateway, _):
        asked = gateway.request_approval("Send the mail?")
        server.add_room(OTHER, BOT, STRANGER)
        for text in ("hello", "/help", f"approve {asked.id}"):
            server.say(text, user=STRANGER, room=OTHER)
        server.say("Agent: hello", user=THIRD, room=GROUP)
        server.invite(NEW, STRANGER)
        server.invite("!spam:other.org", STRANGER)
        await wait_until(lambda: len(server.left) == 2 and server.seen() != [])
        server.react(server.shown()[0].id, "👍", user=STRANGER)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
    (line,) = server.seen(OTHER)
    assert "private" in line and "trunkline channels pair matrix" in line
    assert [*server.left.values()] == ["", ""]  # it was said already
    assert gateway.decided == [] and server.seen(GROUP) == []
    assert [message.content for message in gateway.sent] == ["mine"]


async def test_only_the_owner_invites() -> None:
    """An invitation of the owner is accepted, also one that came while nothing ran; a stranger's is declined, with the
    reason once."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        server.invite(NEW, STRANGER)
        server.invite(OTHER, OWNER, THIRD)
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.rooms[OTHER].members.get(BOT) == "join" and server.left)
            server.say("Agent: hello", room=OTHER)
            await wait_until(lambda: server.seen(OTHER) == ["You said: hello"])
            server.invite("!late:other.org", OWNER)
            server.say("early", room="!late:other.org")
            await wait_until(lambda: server.seen("!late:other.org") == ["You said: early"])
    assert "private" in server.left[NEW] and BOT not in server.rooms[NEW].members


async def test_a_pairing_code_links_its_sender_as_the_owner() -> None:
    """Whoever invites the account with the code is served from then on, after a restart too, and gets calls."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        one = channel(server, owners=())
        async with running_channel(one, gateway):
            gateway.codes.append(CODE)
            asked = gateway.request_approval("Send the mail?")
            server.invite(NEW, STRANGER, reason=CODE)
            await wait_until(lambda: len(server.seen(NEW)) == 2)
            assert any("linked as the owner" in text for text in server.seen(NEW))
            post = next(one for one in server.shown(NEW) if asked.id in one.text)
            server.react(post.id, "👎", user=STRANGER, room=NEW)
            await wait_until(lambda: gateway.decided != [])
            server.say("here", user=STRANGER, room=NEW)
            await wait_until(lambda: "You said: here" in server.seen(NEW))
            await one.tell_owner("news")
            assert "news" in server.seen(NEW)
        server.say("missed", user=STRANGER, room=NEW)
        async with running_channel(channel(server, owners=()), gateway):
            await wait_until(lambda: "You said: missed" in server.seen(NEW))
    assert [message.content for message in gateway.sent] == ["here", "missed"]
    assert gateway.offered_codes == [(CODE, STRANGER)]


async def test_a_code_counts_as_a_message_and_as_the_name_of_a_room() -> None:
    """In a room of two the code may be written, and an invitation may have it in the name of its room."""
    async with talking(owners=()) as (server, gateway, _):
        gateway.codes += [CODE, "AAAA-AAAA"]
        server.add_room(OTHER, BOT, STRANGER)
        server.say(CODE, user=STRANGER, room=OTHER)
        await wait_until(lambda: len(server.seen(OTHER)) == 1)
        server.invite(NEW, THIRD, name="AAAA-AAAA")
        await wait_until(lambda: len(server.seen(NEW)) == 1)
    assert {*gateway.linked} == {STRANGER, THIRD}


async def test_codes_that_do_not_count_link_nobody() -> None:
    """A wrong code gets one line, and a code that others can read is not even offered."""
    async with talking() as (server, gateway, _):
        gateway.codes.append(CODE)
        server.add_room(OTHER, BOT, STRANGER)
        for guess in ("AAAA-AAAA", "bbbb bbbb"):
            server.say(guess, user=STRANGER, room=OTHER)
        server.say(f"Agent: {CODE}", user=THIRD, room=GROUP)
        server.invite(NEW, STRANGER, THIRD, reason=CODE)
        server.invite("!wrong:other.org", STRANGER, reason="AAAA-AAAB")
        await wait_until(lambda: len(server.left) == 2)
        server.say("mine")
        await wait_until(lambda: "You said: mine" in server.seen())
    (no_code,) = server.seen(OTHER)
    assert "does not count" in no_code and all("does not count" in reason for reason in server.left.values())
    assert gateway.codes == [CODE] and gateway.linked == {} and len(gateway.sent) == 1


async def test_an_approval_is_decided_by_a_reaction_or_by_words() -> None:
    """A reaction decides; a decision elsewhere, also while the channel was down, is shown in the post."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        first, second, third = (gateway.request_approval(f"Send mail {number}?") for number in range(3))
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: len(server.shown()) == 3)
            posts = server.shown()
            assert f"deny {first.id}" in posts[0].text and "👍 Allow once, 👎 Deny" in posts[0].text
            server.react(posts[0].id, "🎉")
            server.react(posts[0].id, "👎🏽")
            await wait_until(lambda: "Denied by" in server.seen()[0] and len(server.seen()) == 4)
            server.react(posts[0].id, "👍")  # it no longer waits, and its post has no meanings any more
            server.say(f"approve {second.id}")
            await wait_until(lambda: "Allowed by" in server.seen()[1])
        gateway.settle(third, allow=True, by="terminal")
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: "no longer waits" in server.seen()[2])
    assert [(one[1], one[2]) for one in gateway.decided] == [(first.call, False), (second.call, True)]


async def test_a_question_is_answered_by_its_number() -> None:
    """A reaction with a number gives the answer that has it."""
    async with talking() as (server, gateway, _):
        gateway.ask_question("Which?", options=("the left one", "the right one"))
        await wait_until(lambda: server.shown() != [])
        assert "2⃣ the right one" in server.seen()[0]
        server.react(server.shown()[0].id, "2️⃣")
        await wait_until(lambda: any("Answered" in text for text in server.seen()))
    assert gateway.answers == ["the right one"]


async def test_notices_never_go_where_a_third_person_reads() -> None:
    """After somebody is invited, notices and approvals go to a new room of two, and no old post is changed. What is
    decided among others is refused."""
    async with talking() as (server, gateway, one):
        first = gateway.request_approval("Send the secret?")
        await wait_until(lambda: len(server.seen()) == 1)
        server.change(DIRECT, THIRD, "invite", sender=OWNER)
        before = server.seen()
        await one.tell_owner("news for the owner")
        (room,) = {*server.rooms} - {DIRECT, GROUP}
        assert server.rooms[room].members == {BOT: "join", OWNER: "invite"}
        second = gateway.request_approval("Send another secret?")
        await wait_until(lambda: len(server.seen(room)) == 2)
        server.react(server.shown()[0].id, "👍")
        server.say(f"approve {first.id}")  # not addressed in a room that is not private any more
        server.say(f"Agent: approve {first.id}")
        server.say(f"Agent: /approve {first.id}")
        await wait_until(lambda: len(server.seen()) == 3)
        assert all("in which we are alone" in text for text in server.seen()[1:])
        assert gateway.decided == []
        gateway.settle(first, allow=True, by="terminal")
        server.change(room, OWNER, "join")
        server.say(f"deny {second.id}", room=room)
        await wait_until(lambda: any("Denied by" in text for text in server.seen(room)))
        assert server.seen()[:1] == before


async def test_an_encrypted_room_gets_one_sentence_and_nothing_else() -> None:
    """An invitation is declined with the reason. A room that becomes encrypted gets the sentence once, its running
    answer ends there, and the owner is told elsewhere."""
    shown = anyio.Event()

    def slow(message: object) -> object:
        from trunkline.api.turn import TextDelta, TurnEnded

        yield TextDelta(step=0, offset=0, text="A secret: ")
        yield shown
        yield TextDelta(step=0, offset=99, text="42")
        yield TurnEnded(reason="stop")

    async with talking(slow) as (server, gateway, one):
        server.invite(NEW, OWNER, is_encrypted=True)
        await wait_until(lambda: NEW in server.left)
        assert "encrypted" in server.left[NEW] and BOT not in server.rooms[NEW].members
        server.say("hello")
        await wait_until(lambda: server.seen() == ["A secret:"])
        server.encrypt(DIRECT)
        server.say("", kind="m.room.encrypted", ciphertext="…")
        await wait_until(lambda: len(server.seen()) == 2)
        shown.set()
        await one.tell_owner("news")
        server.say("in clear")
        server.say("hello", room=(room := ({*server.rooms} - {DIRECT, GROUP, NEW}).pop()))
        await wait_until(lambda: "A secret: 42" in server.seen(room))
        assert "news" in server.seen(room)
        secret, sentence = server.seen()
    assert secret == "A secret:" and "encrypted" in sentence
    assert [message.content for message in gateway.sent] == ["hello", "hello"]


async def test_a_homeserver_that_encrypts_every_room_gets_no_notice() -> None:
    """If a new room is encrypted, nothing is sent there, and the sender learns that the owner is not reached."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        del server.rooms[DIRECT]
        server.encrypts_new_rooms = True
        one = channel(server)
        async with running_channel(one, gateway):
            await wait_until(lambda: server.calls.count("sync") >= 2)
            with pytest.raises(Unavailable, match="not encrypted"):
                await one.tell_owner("news")
        assert not any(server.seen(room) for room in server.rooms)


async def test_a_room_is_opened_with_each_owner_once() -> None:
    """Without a room of two the account opens one and invites the owner; a killed process leaves no second one. An
    owner who leaves it is not invited again."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        del server.rooms[DIRECT]
        server.faults.append(ScriptedFault("createRoom", lost=True))
        one = channel(server, owners=(OWNER, "@gone:nowhere.org"))
        async with running_channel(one, gateway):
            await wait_until(lambda: len(server.rooms) == 2 and server.calls.count("sync") >= 2)
            (room,) = {*server.rooms} - {GROUP}
            server.change(room, OWNER, "join")
            await one.tell_owner("news")
            assert server.seen(room) == ["news"]
            server.change(room, OWNER, "leave")
            with pytest.raises(Unavailable, match=r"channels\.matrix\.owners"):
                await one.tell_owner("more news")
        assert len(server.rooms) == 2 and len(server.seen(room)) == 1
    with pytest.raises(Unavailable):
        await one.tell_owner("too late")


async def test_the_token_is_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the most talkative loggers, neither good calls nor a refused token nor broken connections show it."""
    caplog.set_level(1)
    for name in ("httpx", "httpcore", "asyncio", ""):
        monkeypatch.setattr(logging.getLogger(name), "level", 1)
    secret = TOKEN.split("_")[2]
    async with talking() as (server, _, one):
        server.faults.append(ScriptedFault("send", lost=True))
        server.say("hello")
        await wait_until(lambda: server.seen() == ["You said: hello"])
        assert secret not in repr(vars(one))
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", TOKEN + "B")
    async with ScriptedGateway() as gateway, homeserver() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    assert "refuses the token in MATRIX_ACCESS_TOKEN: M_UNKNOWN_TOKEN" in refusal(refused.value).sentence
    assert secret not in f"{refused.value!r} {refused.value.__cause__!r}" and secret not in caplog.text
    assert "m.room.message" in caplog.text  # the loggers do show what is sent


async def test_a_token_that_is_revoked_while_the_channel_runs_ends_it() -> None:
    """The channel ends with an error that names the setting, instead of trying for ever."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        with pytest.raises((ConfigError, ExceptionGroup)) as refused, anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(channel(server).run, gateway)
                await wait_until(lambda: server.calls.count("sync") >= 2)
                server.signed_out = "M_USER_DEACTIVATED"
                server.say("hello")
    assert "channels.matrix.token" in refusal(refused.value).sentence


async def test_a_token_of_another_account_is_refused() -> None:
    """Two settings that contradict each other are named with both accounts."""
    async with ScriptedGateway() as gateway, homeserver() as server:
        server.user = "@other:example.org"
        with pytest.raises((ConfigError, ExceptionGroup)) as refused:
            await channel(server).run(gateway)
    sentence = refusal(refused.value).sentence
    assert "channels.matrix.user" in sentence and BOT in sentence and "@other:example.org" in sentence


@pytest.mark.parametrize(
    ("settings", "token", "sentence"),
    [
        ({"homeserver": "http://h", "user": BOT}, "", "channels.matrix.token: the environment variable"),
        ({"homeserver": "http://h", "user": BOT}, "two words", "is not an access token"),
        ({"homeserver": "http://h"}, TOKEN, "channels.matrix.user is not set"),
        ({"user": BOT}, TOKEN, "channels.matrix.homeserver is not set"),
    ],
)
async def test_a_missing_setting_is_named(
    settings: dict[str, str], token: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting, and not the token."""
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", token)
    async with ScriptedGateway() as gateway:
        with pytest.raises(ConfigError) as refused:
            await MatrixChannel(MatrixSettings(**settings)).run(gateway)  # type: ignore[arg-type]
    assert sentence in refused.value.sentence and (not token or token not in refused.value.sentence)


async def test_an_address_that_is_none_is_refused_with_its_setting() -> None:
    """A wrong homeserver is found when the settings are read."""
    with pytest.raises(ConfigError, match=r"channels\.matrix\.homeserver"):
        MatrixSettings(homeserver="matrix.org", user=BOT)
