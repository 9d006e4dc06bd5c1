"""Watching a turn on a real bus: live, stored, lost, and read from the journal."""

from collections.abc import AsyncIterator

import anyio
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns import feed_reader
from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.contracts.turns.feed_messages import (
    FeedEvent,
    FeedItem,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.feed_reader import FeedReader, TurnNotFound
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallFinished,
    ModelCallPlanned,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import FEED, INBOX, JOURNAL
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.monitor.feed_writer import FeedWriter
from trunkline_bus import Bus

pytestmark = pytest.mark.anyio

CONV, TURN = "conv_1", "turn_1"
ENDED = TurnEnded(reason="stop", message_id="msg_9")


def delta(offset: int, text: str, step: int = 0) -> TextDelta:
    return TextDelta(step=step, offset=offset, text=text)


async def publish(bus: Bus, epoch: int, *events: FeedEvent, start: int = 0) -> None:
    for index, event in enumerate(events, start):
        item = FeedItem(turn=TURN, epoch=epoch, index=index, event=event)
        await bus.publish(FEED, item, conversation=CONV, turn=TURN)


def request() -> TurnRequested:
    message = Message(id="msg_1", role="user", content="hi")
    return TurnRequested(
        turn=TURN, block="main", conversation=CONV, message=message, actor="owner", channel="test"
    )


async def accept(bus: Bus) -> None:
    await bus.append(INBOX, request(), conversation=CONV)


async def journal(bus: Bus, *entries: JournalEntry) -> None:
    record = TurnRecord(turn=TURN, epoch=1, owner="m", entries=entries)
    await bus.append(JOURNAL, record, conversation=CONV, turn=TURN)


def reader(bus: Bus, after: str = "") -> FeedReader:
    return FeedReader(bus, CONV, TURN, after=after, idle_timeout=0.4)


async def seen(watch: FeedReader) -> list[FeedEvent]:
    with anyio.fail_after(60):
        return [event async for event in watch]


@pytest.fixture
async def accepted(bus: Bus) -> AsyncIterator[Bus]:
    await accept(bus)
    yield bus


async def test_stored_and_live_items_are_merged(accepted: Bus) -> None:
    """A reader that comes in the middle gets everything, in order, and ends with the turn."""
    bus = accepted
    await publish(bus, 1, delta(0, "ab"))
    events: list[FeedEvent] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            async for event in reader(bus):
                events.append(event)
                if event == delta(0, "ab"):
                    await publish(bus, 1, delta(2, "cd"), ENDED, start=1)

        tasks.start_soon(watch)
    assert events == [delta(0, "ab"), delta(2, "cd"), ENDED]


async def test_a_fresh_turn_may_be_quicker_than_its_reader(accepted: Bus) -> None:
    """A reader that looks nothing up at first misses nothing: neither the beginning nor a whole short answer."""
    bus = accepted
    watch = FeedReader(bus, CONV, TURN, fresh=True)
    await publish(bus, 1, delta(0, "ab"), ENDED)
    assert await seen(watch) == [delta(0, "ab"), ENDED]

    late = FeedReader(bus, CONV, TURN, fresh=True).events()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish, bus, 2, delta(0, "ab"), delta(2, "cd"), ENDED)
        assert [event async for event in late] == [delta(0, "ab"), delta(2, "cd"), ENDED]


async def test_the_position_leads_back_to_the_same_place(accepted: Bus) -> None:
    """A reader with the position of an event continues right behind it."""
    bus = accepted
    await publish(bus, 1, delta(0, "ab"), delta(2, "cd"), ENDED)
    first = reader(bus)
    async for _ in first:
        break
    assert first.position == "1.0"
    second = reader(bus, first.position)
    assert await seen(second) == [delta(2, "cd"), ENDED]
    assert second.text == "abcd"
    assert await seen(reader(bus, second.position)) == []


async def test_a_waiting_turn_is_waited_for(accepted: Bus) -> None:
    """An accepted turn that no monitor has started is not unknown; the reader waits."""
    with anyio.move_on_after(1.0) as waited:
        await seen(reader(accepted))
    assert waited.cancelled_caught


async def test_an_unknown_turn_is_not_found(bus: Bus) -> None:
    """A turn that neither feed nor journal nor inbox knows is refused at once."""
    with pytest.raises(TurnNotFound) as refused:
        await seen(reader(bus))
    assert refused.value.code == ErrorCode.NOT_FOUND


async def test_a_turn_that_a_server_learns_of_late_is_not_unknown(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has just become the leader may not have the accepted message yet: it is asked once more before a
    turn is refused. The pause is longer here, so that the turn surely arrives in it."""
    monkeypatch.setattr(feed_reader, "CAUGHT_UP_WITHIN", 5.0)
    events: list[FeedEvent] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            events.extend(await seen(reader(bus)))

        tasks.start_soon(watch)
        await anyio.sleep(0.5)
        await accept(bus)
        await publish(bus, 1, ENDED)
    assert events == [ENDED]


async def test_an_item_received_early_waits_for_its_predecessor(accepted: Bus) -> None:
    """An item behind a hole is held back until the missing one is sent again."""
    bus = accepted
    await publish(bus, 1, delta(2, "cd"), ENDED, start=1)
    events: list[FeedEvent] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            events.extend(await seen(reader(bus)))

        tasks.start_soon(watch)
        await anyio.sleep(0.3)
        assert events == []
        await publish(bus, 1, delta(0, "ab"))
    assert events == [delta(0, "ab"), delta(2, "cd"), ENDED]


CALL = ToolCall(id="c1", name="look", arguments={})
STORY: tuple[JournalEntry, ...] = (
    TurnStarted(request=request(), model="m"),
    ModelCallPlanned(step=0),
    ModelCallFinished(step=0, text="I look.", tool_calls=(CALL,), finish_reason="tool_calls"),
    ToolPlanned(call=CALL, key="k"),
    ToolFinished(call_id="c1", outcome=ToolOutcome(call="k", status="ok", output="seen")),
    ModelCallPlanned(step=1),
    ModelCallFinished(step=1, text="Done."),
    TurnFinished(reason="stop", message_id="msg_9", usage=Usage(input_tokens=3, output_tokens=2)),
)
REPORTED = [
    delta(0, "I look."),
    ToolStarted(step=0, call=CALL),
    ToolEnded(step=0, call_id="c1", name="look", output="seen"),
    delta(0, "Done.", step=1),
    TurnEnded(reason="stop", message_id="msg_9", usage=Usage(input_tokens=3, output_tokens=2)),
]


async def test_an_expired_feed_is_read_from_the_journal(bus: Bus) -> None:
    """A turn that ended long ago can be read as it was, from its journal."""
    await journal(bus, *STORY)
    assert await seen(reader(bus)) == REPORTED


async def test_a_missing_end_is_read_from_the_journal(bus: Bus) -> None:
    """When the feed ends early and the journal has the turn's end, the reader receives the rest and no more."""
    await publish(bus, 1, delta(0, "I lo"))
    await journal(bus, *STORY)
    assert await seen(reader(bus)) == [delta(0, "I lo"), delta(4, "ok."), *REPORTED[1:]]


async def test_resuming_a_feed_read_from_the_journal(bus: Bus) -> None:
    """A position issued while the journal was read leads back to the same place."""
    await journal(bus, *STORY)
    first = reader(bus)
    async for event in first:
        if event == REPORTED[1]:
            break
    assert await seen(reader(bus, first.position)) == REPORTED[2:]


async def tell(bus: Bus, epoch: int, teller: JournalTranslator, *entries: JournalEntry) -> None:
    """Publish the entries' meaning, as the monitor does."""
    turn = FeedWriter(bus, "main", CONV, TURN, epoch)
    await turn.emit_journaled(*(reported for entry in entries for reported in teller.translate(entry)))


@pytest.mark.parametrize("again_by", ["a new owner", "the journal"])
async def test_unstored_items_are_not_shown_again(accepted: Bus, again_by: str) -> None:
    """A client that saw a tool's call live returns to a feed that lost it, as in an election, and to an owner or a
    journal that starts from the beginning: it receives the unseen items, and the call no second time."""
    bus = accepted
    first = reader(bus)
    async with anyio.create_task_group() as tasks:
        events = first.events()
        tasks.start_soon(tell, bus, 1, JournalTranslator(), *STORY[:3])
        shown = [await anext(events) for _ in range(2)]
        await events.aclose()
    assert shown == REPORTED[:2]
    await until_stored(bus, 2)
    await bus.delete(FEED, await bus.last_seq(FEED, conversation=CONV, turn=TURN))
    if again_by == "a new owner":
        await tell(bus, 2, JournalTranslator(), *STORY)
    else:
        await journal(bus, *STORY)
    rest = [event for event in await seen(reader(bus, first.position)) if not isinstance(event, TextReset)]
    assert [event for event in rest if not isinstance(event, TextDelta)] == [REPORTED[2], REPORTED[4]]


async def until_stored(bus: Bus, count: int) -> None:
    """The feed is published without waiting for the store."""
    with anyio.fail_after(60):
        while len([one async for one in bus.history(FEED, conversation=CONV, turn=TURN)]) < count:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_failed_turn_ends_with_its_fixed_sentence(bus: Bus) -> None:
    """The sentence of a failed turn is the code's own, also from the journal."""
    await journal(
        bus,
        TurnStarted(request=request(), model="m"),
        TurnFinished(reason="error", code=ErrorCode.PROVIDER_ERROR),
    )
    ended = (await seen(reader(bus)))[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.sentence == FIXED_SENTENCES[ErrorCode.PROVIDER_ERROR]


async def test_nonsense_is_refused_before_anything_is_asked(bus: Bus) -> None:
    """A position that no reader gave out is a ValueError."""
    with pytest.raises(ValueError, match="not a position"):
        reader(bus, "yesterday")
