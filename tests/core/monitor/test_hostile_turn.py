"""Turns under hostile conditions found by a reviewer, with all workers in one process on a real server."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from tests.block_client import BlockClient
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.gateway.subjects import DECIDE_APPROVAL
from trunkline.contracts.streams import INBOX_STREAM
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.context import TurnInfo
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    TextDelta,
    ToolEnded,
)
from trunkline.contracts.turns.journal_messages import ModelCallPlanned, TurnFinished, TurnRecord, TurnStarted
from trunkline.contracts.turns.messages import ApprovalDecided, TurnRequested, TurnSteered
from trunkline.contracts.turns.subjects import FEED, INBOX, JOURNAL
from trunkline.runtime.block_access import BlockAccess
from trunkline.testing.platform import CHANNEL, PlatformClient
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.conversation_service import ConversationService
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline.workers.monitor.feed_writer import TextStream
from trunkline_bus import CallTimeout, Payload, RemoteFault, Subject, Topic, apply, new_id
from trunkline_bus.streams.jetstream import request_api as jetstream

from .conftest import Gate, Tools, scripted, scripted_at

pytestmark = pytest.mark.anyio


class Around:
    """A plugin whose turn middleware is the given function."""

    def __init__(self, middleware: Callable[[TurnInfo, Any], Awaitable[None]]) -> None:
        self.middleware = middleware

    @trunkline.hookimpl
    def trunkline_turn_middleware(self) -> Sequence[Any]:
        return [self.middleware]


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not await check():  # noqa: ASYNC110 - what is waited for is in other workers
            await anyio.sleep(0.02)


async def status_is(running: PlatformClient, turn: str, status: str) -> None:
    async def is_so() -> bool:
        return (await running.gateway.turn(turn)).status == status

    await until(is_so)


async def asked_of(
    running: PlatformClient, accepted: MessageAccepted, count: int = 1
) -> list[ApprovalRequested]:
    asked: list[ApprovalRequested] = []
    with anyio.fail_after(60):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, ApprovalRequested):
                asked.append(event)
            if len(asked) == count:
                break
    return asked


async def decide(
    running: PlatformClient, accepted: MessageAccepted, asked: ApprovalRequested, *, allow: bool
) -> None:
    decision = ApprovalDecided(
        turn=accepted.turn, call=asked.call.id, call_hash=asked.call_hash, allow=allow, by="x"
    )
    await running.bus.call(DECIDE_APPROVAL, decision, channel=CHANNEL)


async def message_texts(running: PlatformClient, conversation: str) -> list[str]:
    view = await running.gateway.conversation(conversation)
    return [message.content for message in view.messages]


async def ends_of(running: PlatformClient, accepted: MessageAccepted) -> list[TurnFinished]:
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    entries = [e async for s in running.bus.history(JOURNAL, after=0, **keys) for e in s.data.entries]
    return [entry for entry in entries if isinstance(entry, TurnFinished)]


def steering(into: MessageAccepted, text: str) -> TurnSteered:
    """A message steered into a turn, as the gateway puts it into the inbox."""
    turn = new_id("turn")
    message = Message(id=new_id("msg"), role="user", content=text, turn=turn)
    request = TurnRequested(
        turn=turn, block=into.block, conversation=into.conversation, message=message, actor="x", channel="x"
    )
    return TurnSteered(turn=into.turn, request=request)


class Cap:
    """A plugin that stops every turn after two steps."""

    @trunkline.hookimpl
    def trunkline_stop_turn(self, turn: TurnInfo) -> str | None:
        return "two steps are enough" if turn.step >= 2 else None


async def test_a_plugin_stops_a_turn_before_its_next_step() -> None:
    """The turn ends as stopped, is stored, and the conversation continues."""
    tools = Tools()
    async with scripted(tools, Cap()) as (running, model):
        answer = await running.say(" ;; ".join(['call:note {"text": "a"}'] * 5))
        assert answer.ended.reason == "stopped" and tools.log == ["a", "a"] and len(model.requests) == 2
        assert (await running.say("say:on", conversation=answer.accepted.conversation)).text == "on"


async def test_a_decision_is_about_the_call_that_it_names(client: BlockClient, tools: Tools) -> None:
    """Of two calls with the same tool and arguments, the denied one is denied, and the other one runs."""
    accepted = await client.send('parallel:note {"text": "x"} note {"text": "x"} ;; say:done')
    first, second = await asked_of(client, accepted, 2)
    await status_is(client, accepted.turn, "parked")
    await decide(client, accepted, second, allow=False)
    await decide(client, accepted, first, allow=True)
    answer = await client.answer(accepted)
    ended = {event.call_id: event for event in answer.events if isinstance(event, ToolEnded)}
    assert ended[second.call.id].error and not ended[first.call.id].error
    assert tools.log == ["x"]


async def test_of_many_decisions_the_first_counts(client: BlockClient, tools: Tools) -> None:
    """Every concurrent decision after the first is too late, whether or not its sender is told; the call runs once."""
    accepted = await client.send('call:note {"text": "x"} ;; say:done')
    (asked,) = await asked_of(client, accepted)
    await status_is(client, accepted.turn, "parked")
    decision = ApprovalDecided(
        turn=accepted.turn, call=asked.call.id, call_hash=asked.call_hash, allow=False, by="first"
    )
    allowed = msgspec.structs.replace(decision, allow=True, by="late")
    for item in (decision, allowed, allowed, decision):
        await client.bus.append(INBOX, item, conversation=accepted.conversation)
    answer = await client.answer(accepted)
    await until(lambda: inbox_is_empty(client, accepted.conversation))
    settled = [event for event in answer.events if isinstance(event, ApprovalSettled)]
    assert [(event.allow, event.by) for event in settled] == [(False, "first")] and tools.log == []
    with pytest.raises(RemoteFault, match="conflict"):
        await decide(client, accepted, asked, allow=True)


async def test_a_steered_message_that_comes_too_late_keeps_its_place(client: BlockClient) -> None:
    """It becomes a separate turn, after the messages that were accepted before it."""
    first = await client.send("call:wait {} ;; say:one")
    await status_is(client, first.turn, "running")
    second = await client.send("say:two", conversation=first.conversation)
    await client.gateway.cancel(first.turn)
    await client.bus.append(INBOX, steering(first, "say:three"), conversation=first.conversation)
    await client.answer(second)
    await until_message_is_stored(client, first.conversation, "three")
    assert (await message_texts(client, first.conversation))[-4:] == [
        "say:two",
        "two",
        "say:three",
        "three",
    ]


async def until_message_is_stored(running: PlatformClient, conversation: str, text: str) -> None:
    async def is_so() -> bool:
        return text in await message_texts(running, conversation)

    await until(is_so)


async def test_a_message_behind_a_parked_turn_waits_through_a_restart(tmp_path: Path) -> None:
    """The order of a conversation does not depend on the monitor that owns it."""
    tools = Tools()
    async with scripted_at(tmp_path, tools, Gate()) as (running, _):
        first = await running.send('call:note {"text": "x"} ;; say:one')
        (asked,) = await asked_of(running, first)
        await status_is(running, first.turn, "parked")
        second = await running.send("say:two", conversation=first.conversation)
    async with scripted_at(tmp_path, tools, Gate()) as (running, _):
        assert (await running.say("say:elsewhere")).text == "elsewhere"
        with anyio.move_on_after(3):
            await running.answer(second)
        assert (await running.gateway.turn(second.turn)).status == "queued"
        await decide(running, first, asked, allow=True)
        assert [(await running.answer(a)).text for a in (first, second)] == ["one", "two"]
        said = [text for text in await message_texts(running, first.conversation) if text]
        assert said[-3:] == ["one", "say:two", "two"]


async def test_a_restarted_turn_still_obeys_its_cancel() -> None:
    """A cancel is not used up by a try that failed."""
    tools, tries = Tools(), []

    async def away_at_first(turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None:
        if turn.request.message.content == "say:two":
            tries.append(turn.request.turn)
            if len(tries) == 1:
                raise CallTimeout("somebody was away")
        await proceed()

    async with scripted(tools, Around(away_at_first)) as (running, model):
        first = await running.send("call:wait {} ;; say:one")
        second = await running.send("say:two", conversation=first.conversation)
        await running.gateway.cancel(second.turn)
        tools.gate.set()
        assert (await running.answer(second)).ended.reason == "cancelled"
        assert len(tries) == 2 and len(model.requests) == 2


class NewerRecord(Payload, frozen=True, kw_only=True, tag="journal.record.v1"):
    """A journal record as a later version may write it."""

    turn: str
    epoch: int
    owner: str
    entries: tuple[dict[str, str], ...]


NEWER_JOURNAL = Topic(
    name="newer journal",
    subject=Subject(JOURNAL.subject.template),
    payload=NewerRecord,
    stream=JOURNAL.stream,
)


async def test_a_journal_that_cannot_be_read_ends_its_turn_and_no_more(
    client: BlockClient, tools: Tools
) -> None:
    """The turn ends with the code internal; the messages behind it are answered."""
    first = await client.send("call:wait {} ;; say:one")
    await status_is(client, first.turn, "running")
    second = await client.send("say:two", conversation=first.conversation)
    record = NewerRecord(turn=first.turn, epoch=1, owner="newer", entries=({"type": "from_the_future"},))
    await client.bus.append(NEWER_JOURNAL, record, conversation=first.conversation, turn=first.turn)
    tools.gate.set()
    assert (await client.answer(first)).ended.code == "internal"
    assert (await client.gateway.turn(first.turn)).status == "finished"
    assert (await client.answer(second)).text == "two"
    assert (await client.say("say:on", conversation=first.conversation)).text == "on"
    assert (await message_texts(client, first.conversation))[0] == "call:wait {} ;; say:one"
    await client.bus.purge(FEED, conversation=first.conversation, turn=first.turn)
    assert (await client.answer(first)).ended.code == "internal"


async def test_a_turn_found_only_in_the_journal_is_ended_before_the_next(
    client: BlockClient, model: ScriptedModel
) -> None:
    """A server that lost an inbox item, or a decision further behind: the turn begun by a dead owner keeps its place,
    and the message behind it is given its answer."""
    first = (await client.say("say:one")).accepted
    message = Message(id="msg_lost", role="user", content="say:two")
    request = TurnRequested(
        turn="turn_lost", block=client.block, conversation=first.conversation, message=message, actor="owner",
        channel=CHANNEL,
    )  # fmt: skip
    entries = (TurnStarted(request=request, model=""), ModelCallPlanned(step=0))
    record = TurnRecord(turn="turn_lost", epoch=1, owner="dead", entries=entries)
    await client.bus.append(JOURNAL, record, conversation=first.conversation, turn="turn_lost")
    assert (await client.say("say:three", conversation=first.conversation)).text == "three"
    assert await message_texts(client, first.conversation) == [
        "say:one", "one", "say:two", "two", "say:three", "three",
    ]  # fmt: skip
    assert "two" in [message.content for message in model.requests[-1].messages]


async def test_an_unreadable_turn_does_not_stop_others(client: BlockClient) -> None:
    """The journal ends with an unknown turn without its message: the next message is answered."""
    first = (await client.say("say:one")).accepted
    record = NewerRecord(turn="turn_new", epoch=1, owner="newer", entries=({"type": "from_the_future"},))
    await client.bus.append(NEWER_JOURNAL, record, conversation=first.conversation, turn="turn_new")
    assert (await client.say("say:two", conversation=first.conversation)).text == "two"
    assert (await client.say("say:three", conversation=first.conversation)).text == "three"


class UnknownRecord(Payload, frozen=True, kw_only=True, tag="journal.record.v99"):
    """A record of a type that no reader knows."""


async def test_garbage_after_a_journal_does_not_stop_the_conversation(client: BlockClient) -> None:
    """A record of an unknown kind follows an ended turn: the next message is still answered."""
    topic = Topic(name="garbage", subject=JOURNAL.subject, payload=UnknownRecord, stream=JOURNAL.stream)
    first = (await client.say("say:one")).accepted
    await client.bus.append(topic, UnknownRecord(), conversation=first.conversation, turn=first.turn)
    assert (await client.say("say:two", conversation=first.conversation)).text == "two"
    assert await message_texts(client, first.conversation) == ["say:one", "one", "say:two", "two"]


async def test_items_for_an_abandoned_turn_are_not_lost() -> None:
    """It ended once, with a journal that can be read again; a message steered into it becomes a turn of its own."""

    async def broken(turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None:
        if turn.request.message.content == "say:one":
            raise RuntimeError("no")
        await proceed()

    async with scripted(Around(broken)) as (running, _):
        first = await running.send("say:one")
        assert (await running.answer(first)).ended.code == "internal"
        assert (await running.gateway.turn(first.turn)).status == "finished"
        await running.bus.append(INBOX, steering(first, "say:two"), conversation=first.conversation)
        await until_message_is_stored(running, first.conversation, "two")
        assert len(await ends_of(running, first)) == 1


async def test_a_turn_given_up_in_its_middle_ends_once() -> None:
    """This holds also when the middleware breaks after the model answered."""
    tools = Tools()

    async def broken(turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None:
        if turn.request.message.content.startswith("call:"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(proceed)
                await anyio.sleep(0.3)
                raise RuntimeError("no")
        await proceed()

    async with scripted(tools, Around(broken)) as (running, _):
        first = await running.send("call:wait {} ;; say:one")
        assert (await running.answer(first)).ended.code == "internal"
        await running.bus.append(INBOX, steering(first, "say:two"), conversation=first.conversation)
        await until_message_is_stored(running, first.conversation, "two")
        assert len(await ends_of(running, first)) == 1


async def test_a_parked_turn_remains_parked_when_steered(
    client: BlockClient, tools: Tools, model: ScriptedModel
) -> None:
    """The turn accepts the message, continues to wait, and reports so; the later decision still reaches it."""
    first = await client.send('call:note {"text": "x"} ;; say:one')
    (asked,) = await asked_of(client, first)
    await status_is(client, first.turn, "parked")
    await client.send("and hurry", conversation=first.conversation, steer=first.turn)
    await until(lambda: inbox_is_empty(client, first.conversation))
    await status_is(client, first.turn, "parked")
    await decide(client, first, asked, allow=True)
    await client.answer(first)
    assert model.requests[-1].messages[-1].content == "and hurry" and tools.log == ["x"]


async def inbox_is_empty(running: PlatformClient, conversation: str) -> bool:
    return not [s async for s in running.bus.history(INBOX, after=0, conversation=conversation)]


async def test_a_truncated_text_is_stored_as_shown() -> None:
    """A message that arrives while the last text is shown is shown too; later ones are dropped."""

    class Shown:
        def __init__(self) -> None:
            self.text = ""

        async def emit(self, *events: FeedEvent) -> None:
            for event in events:
                assert isinstance(event, TextDelta)
                if not self.text:
                    stream.add(" and more")
                self.text += event.text

    shown = Shown()
    stream = TextStream(shown, 0, 0.01)
    stream.add("some")
    text = await stream.close()
    stream.add(" too late")
    await stream.flush()
    assert shown.text == text == "some and more"


async def test_a_steered_message_sent_again_is_still_part_of_its_turn(
    client: BlockClient, tools: Tools
) -> None:
    """A client that repeats itself after the turn has ended gets the turn that took the message in."""
    first = await client.send("call:wait {} ;; say:done")
    await status_is(client, first.turn, "running")
    given = {"conversation": first.conversation, "steer": first.turn, "client_id": "abc"}
    steered = await client.send("and hurry", **given)
    await until(lambda: has_message(client, first.conversation, "and hurry"))
    tools.gate.set()
    await client.answer(first)
    again = await client.send("and hurry", **given)
    assert again.turn == steered.turn == first.turn and again.duplicate
    assert (await message_texts(client, first.conversation)).count("and hurry") == 1


async def has_message(running: PlatformClient, conversation: str, text: str) -> bool:
    return text in await message_texts(running, conversation)


async def test_a_conversation_is_found_while_its_first_turn_ends(client: BlockClient, tools: Tools) -> None:
    """A second message at that moment does not get the error that there is no such conversation."""
    first = await client.send("call:wait {} ;; say:one")
    await status_is(client, first.turn, "running")

    class Late(TurnLookup):
        async def block_of(self, conversation: str) -> str | None:
            tools.gate.set()
            await client.answer(first)
            await until(lambda: inbox_is_empty(client, conversation))
            return await super().block_of(conversation)

    found = ConversationService(client.bus, Late(client.bus), BlockCache(client.bus), BlockAccess(client.bus))
    assert await found.block_of(first.conversation) == first.block


async def test_a_recreated_inbox_loses_nothing() -> None:
    """The server's folder may be deleted while all is idle: the sequences that are given out again are new messages."""
    async with scripted() as (running, _):
        for number in range(4):
            assert (await running.say(f"say:{number}")).text == str(number)
        await jetstream(running.bus.link, f"STREAM.DELETE.{INBOX_STREAM}")
        await apply(running.bus, topology())
        for number in range(4):
            assert (await running.say(f"say:{number}")).text == str(number)
