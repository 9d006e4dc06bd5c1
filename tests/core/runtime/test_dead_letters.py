"""Dead letters: the listing, and sending them again."""

import base64
import re
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.buses import bus_at
from trunkline.contracts import subjects
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.streams import inbox_consumer
from trunkline.contracts.turns.messages import TurnCancelRequested, TurnRequested
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC
from trunkline.errors import TrunklineError
from trunkline.runtime.dead_letters import (
    PREFIX_REASONS,
    REFUSAL_REASONS,
    StoredDeadLetter,
    check_retriable,
    find_dead_letters,
    list_dead_letters,
    refusal_reason,
    retry,
)
from trunkline.testing.platform import platform
from trunkline_bus import (
    Bus,
    DeadLetter,
    Envelope,
    Topic,
)
from trunkline_bus.streams.admin import raw_history, resend

pytestmark = pytest.mark.anyio


async def buried(bus: Bus, subject: str, body: bytes, *, size: int | None = None) -> StoredDeadLetter:
    letter = DeadLetter(
        subject=subject, reason="unknown_type", data=base64.b64encode(body).decode(),
        size=len(body) if size is None else size,
    )  # fmt: skip
    ack = await bus.append(DEAD_LETTER_TOPIC, letter)
    return (await find_dead_letters(bus, (ack.seq,)))[0]


def cancel() -> bytes:
    request = TurnCancelRequested(turn="turn_1", by="ann")
    return msgspec.json.encode(Envelope(id="01ABC", time=datetime.now(UTC), source="gateway", data=request))


async def test_a_message_of_the_inbox_is_sent_again_byte_for_byte(tmp_path: Path) -> None:
    """The message is appended under the same conversation, with its original bytes; the dead letter is gone; sending
    it twice counts once."""
    async with bus_at(tmp_path) as bus:
        one = await buried(bus, "trunkline.turn.part.3.conv_1", cancel())
        await retry(bus, one)
        stored = [item async for item in bus.history(INBOX, conversation="conv_1")]
        assert [item.data.by for item in stored] == ["ann"]  # type: ignore[union-attr]
        assert stored[0].envelope.id == "01ABC"
        assert await list_dead_letters(bus) == []


async def test_unread_messages_become_dead_letters_and_are_listed(tmp_path: Path) -> None:
    """The message is traced from the consumer's rejection to the list; sending it again would only fail again, so
    that is refused."""
    async with bus_at(tmp_path) as bus:
        await resend(bus, INBOX, b"not json", msg_id="1", headers={}, conversation="conv_1")
        partition = int(await _raw_partition(bus))
        there: list[StoredDeadLetter] = []
        async with (
            bus.pinned(inbox_consumer(partition), INBOX) as items,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(items.__anext__)
            with anyio.fail_after(60):
                while not there:
                    there = await _next_dead(bus)
            tasks.cancel_scope.cancel()
        assert there[0].letter.reason == "garbage" and there[0].body == b"not json" and there[0].is_complete
        with pytest.raises(TrunklineError, match="cannot read it either"):
            await retry(bus, there[0])


async def _raw_partition(bus: Bus) -> str:
    return [record.subject async for record in raw_history(bus, INBOX)].pop().split(".")[3]


async def _next_dead(bus: Bus) -> list[StoredDeadLetter]:
    await anyio.sleep(0.05)
    return await list_dead_letters(bus)


async def test_half_a_message_is_not_sent(tmp_path: Path) -> None:
    """Dead letters keep 64 KiB; the rest of a longer message is lost."""
    async with bus_at(tmp_path) as bus:
        one = await buried(bus, "trunkline.turn.inbox.conv_1", b"{}", size=100_000)
        assert not one.is_complete
        with pytest.raises(TrunklineError, match="only 2 of its 100000 bytes"):
            await retry(bus, one)
        assert len(await list_dead_letters(bus)) == 1


async def test_a_large_message_is_requeued_with_its_body(tmp_path: Path) -> None:
    """Its bytes name nothing, but the object is named like the envelope."""
    async with bus_at(tmp_path) as bus:
        message = Message(id="msg_1", role="user", content="x" * 300_000)
        request = TurnRequested(
            turn="turn_1", block="main", conversation="conv_1", message=message, actor="ann", channel="test"
        )
        await bus.append(INBOX, request, conversation="conv_1")
        wire = [record async for record in raw_history(bus, INBOX)].pop()
        await bus.purge(INBOX)
        one = await buried(bus, wire.subject, wire.data)
        await retry(bus, one)
        again = await bus.last(INBOX)
        assert again is not None and again.data == request


async def test_every_stored_topic_is_decided_about() -> None:
    """Each topic that a stream keeps is the inbox, the dead letters themselves, or has a reason against it."""
    kept = [one for one in vars(subjects).values() if isinstance(one, Topic) and one.stream]
    undecided = [
        one.name
        for one in kept
        if one not in (INBOX, DEAD_LETTER_TOPIC) and one.subject.template not in REFUSAL_REASONS
    ]
    assert undecided == []


@pytest.mark.parametrize(
    ("subject", "word"),
    [
        ("trunkline.journal.turn.conv_1.turn_1", "owner"),
        ("trunkline.journal.effect.call_1", "ledger"),
        ("trunkline.feed.turn.conv_1.turn_1", "position"),
        ("trunkline.turn.moved.conv_1", "sent again as the inbox message"),
        ("trunkline.evt.turn.main.finished", "count it twice"),
        ("trunkline.evt.approval.apr_1", "asked again"),
        ("trunkline.turn.timer.apr_1.end", "another time"),
        ("trunkline.turn.due.apr_1.end", "when it is due"),
        ("trunkline.evt.audit.main.noted", "recorded twice"),
        ("trunkline.journal.request.monitor-1.req_1", "charged again"),
        ("trunkline.evt.cost.2026-11-27.req_1", "charged twice"),
        ("trunkline.evt.budget.evt_1", "told twice"),
        ("trunkline.evt.trace.4bf92f3577b34da6.spans", "shown twice"),
        ("trunkline.cmd.memory.read", "request"),
        ("trunkline.ctl.tools.call_1.cancel", "moment"),
        ("trunkline.x.dice.rolled", "plugin"),
        ("trunkline.evt.memory.files.changed", "event"),
        ("elsewhere", "nobody reads"),
    ],
)
async def test_other_dead_letters_are_refused_with_a_reason(tmp_path: Path, subject: str, word: str) -> None:
    """The reason is of that kind of message."""
    assert word in refusal_reason(subject)


@pytest.mark.parametrize("template", REFUSAL_REASONS)
def test_each_topic_has_its_own_reason(template: str) -> None:
    """A subject of the topic gets the reason that the table gives for the topic."""
    subject = re.sub(r"\{\w+\}", "x1", template)
    assert refusal_reason(subject) == REFUSAL_REASONS[template]


@pytest.mark.parametrize("prefix", PREFIX_REASONS)
def test_each_prefix_has_its_own_reason(prefix: str) -> None:
    """A subject that no stored topic has gets the reason for its prefix."""
    assert refusal_reason(f"{prefix}some.subject") == PREFIX_REASONS[prefix]


async def test_an_invalid_dead_letter_is_still_listed(tmp_path: Path) -> None:
    """Junk on the dead-letter subject does not hide the others."""
    async with bus_at(tmp_path) as bus:
        await resend(bus, DEAD_LETTER_TOPIC, b"\xff\x00", msg_id="1", headers={})
        await buried(bus, "trunkline.turn.inbox.conv_1", cancel())
        first, second = await list_dead_letters(bus)
        assert first.body == b"\xff\x00" and first.letter.reason == "garbage"
        assert await check_retriable(bus, second) == {"conversation": "conv_1"}


async def test_a_message_that_is_sent_again_is_answered_once() -> None:
    """A monitor takes it like any other; sent once more after its turn is done, nothing happens."""
    async with platform() as running:
        first = await running.say("hello")
        message = Message(id="msg_late", role="user", content="and this")
        request = TurnRequested(
            turn="turn_late",
            block="main",
            conversation=first.accepted.conversation,
            message=message,
            actor="owner",
            channel="test",
        )
        body = msgspec.json.encode(
            Envelope(id="01ABD", time=datetime.now(UTC), source="gateway", data=request)
        )
        keys = {"conversation": request.conversation, "turn": request.turn}
        await retry(
            running.bus, await buried(running.bus, f"trunkline.turn.inbox.{request.conversation}", body)
        )
        answer = await running.answer(msgspec.structs.replace(first.accepted, turn="turn_late"))
        assert answer.ended.reason == "stop" and answer.text
        before = [stored.seq async for stored in running.bus.history(JOURNAL, **keys)]
        await retry(
            running.bus, await buried(running.bus, f"trunkline.turn.inbox.{request.conversation}", body)
        )
        with anyio.fail_after(60):
            while await running.bus.last(INBOX) is not None:  # noqa: ASYNC110  it is asked over the bus
                await anyio.sleep(0.02)
        assert [stored.seq async for stored in running.bus.history(JOURNAL, **keys)] == before
