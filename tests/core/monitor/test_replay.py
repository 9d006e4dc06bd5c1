"""A recorded turn driven again: the same entries are produced, and a difference is found."""

import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.commands import run_trunkline
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.turns.feed_messages import FeedItem, TextDelta, TurnEnded
from trunkline.contracts.turns.journal_messages import (
    CancelRecorded,
    JournalEntry,
    SteerRecorded,
    TurnFinished,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.subjects import FEED
from trunkline.errors import ErrorCode, TrunklineError
from trunkline.testing.platform import UNASKED, platform
from trunkline.workers.monitor.journal import RAW_JOURNAL, RawRecord
from trunkline.workers.monitor.replay import ReplayReport, replay
from trunkline.workers.monitor.turn import Command, ParkTurn, Phase, StoreTurn, Turn

sys.path.insert(0, str(Path(__file__).parent))

from test_turn import CommandRunner, requested

Written = list[tuple[int, tuple[JournalEntry, ...]]]


def raw(written: Written) -> list[RawRecord]:
    return [
        RawRecord(epoch=epoch, entries=tuple(msgspec.Raw(msgspec.json.encode(entry)) for entry in entries))
        for epoch, entries in written
    ]


def lived(seed: int, crashes: list[int]) -> Written:
    """A turn of the command runner, as its owners recorded it."""
    chance = random.Random(seed)
    runner, turn, epoch = CommandRunner(chance), Turn(), 1
    entries, todo = turn.advance(TurnStarted(request=requested(), model="m"))
    written: Written = [(epoch, entries)]
    pending: list[Command] = list(todo)
    for moment in range(400):
        if turn.phase is Phase.DONE:
            break
        if moment in crashes:
            epoch += 1
            turn = Turn()
            for entry in [entry for _, record in written for entry in record]:
                turn.apply(entry)
            parked = turn.phase is Phase.PARKED
            entries, todo = turn.advance(TurnResumed())
            written.append((epoch, entries))
            pending = [ParkTurn()] if parked else list(todo)
        command = pending.pop(chance.randrange(len(pending)))
        happened = [runner.does(command, turn)]
        if isinstance(command, ParkTurn):
            happened.insert(0, TurnResumed())
        if chance.random() < 0.1:
            happened.append(SteerRecorded(message=Message(id=f"msg_{moment}", role="user", content="more")))
        entries, todo = turn.advance(*happened)
        written.append((epoch, entries))
        pending += todo
        if chance.random() < 0.05 and (entries := cancelled(turn, chance)):
            written.append((epoch, entries))
            pending = [StoreTurn(turn.reason)] if turn.phase is Phase.CLOSING else pending
    return written


def cancelled(turn: Turn, chance: random.Random) -> tuple[JournalEntry, ...]:
    """End the turn; a model call that is cut keeps its partial text."""
    mode: Literal["now", "after_step"] = chance.choice(("now", "after_step"))
    said = "so f" if mode == "now" and turn.phase is Phase.THINKING else ""
    return turn.advance(CancelRecorded(by="ann", mode=mode, partial=said))[0]


@settings(deadline=None)
@given(seed=st.integers(), crashes=st.lists(st.integers(0, 30), max_size=6))
def test_every_replayed_turn_is_identical(seed: int, crashes: list[int]) -> None:
    """With tools, approvals, denials, failures, steering, cancels and any number of owners; also unended ones."""
    written = lived(seed, crashes)
    done = replay("turn_1", raw(written))
    assert done.same, done
    assert done.end_same is True and done.messages_same is True and done.feed_same is None
    for length in range(1, len(written)):
        part = replay("turn_1", raw(written[:length]))
        assert part.entries_same and part.end_same is None


@settings(deadline=None)
@given(seed=st.integers(), data=st.data())
def test_replay_finds_an_entry_that_differs_from_the_state_machine(seed: int, data: st.DataObject) -> None:
    """A missing record and a different end are found; a record that a cancel made unnecessary is not missed."""
    written = lived(seed, [])
    assume(not any(isinstance(entry, CancelRecorded) for _, entries in written for entry in entries))
    number = data.draw(st.integers(0, len(written) - 2))
    assert not replay("turn_1", raw(written[:number] + written[number + 1 :])).same
    epoch, entries = written[-1]
    end = entries[-1]
    assert isinstance(end, TurnFinished)
    other = msgspec.structs.replace(end, message_id="msg_other")
    done = replay("turn_1", raw([*written[:-1], (epoch, (*entries[:-1], other))]))
    assert done.entries_same and done.end_same is False and not done.same


def test_a_byte_that_this_version_would_write_otherwise_is_found() -> None:
    """The comparison is of bytes, not of meaning."""
    records = raw(lived(1, []))
    entries = records[0].entries
    spaced = msgspec.Raw(bytes(entries[-1]).replace(b":", b": "))
    done = replay(
        "turn_1", [msgspec.structs.replace(records[0], entries=(*entries[:-1], spaced)), *records[1:]]
    )
    assert not done.records[0].same and all(record.same for record in done.records[1:])


def test_replay_ignores_abandoned_turns() -> None:
    """Its last record was written past the machine."""
    end = TurnFinished(reason="error", code=ErrorCode.INTERNAL)
    done = replay("turn_1", raw([(1, (TurnStarted(request=requested(), model=""), end))]))
    assert done.same and done.end_same is None and done.messages_same is None and done.phase == "done"


def test_entries_of_a_later_version_are_refused() -> None:
    """A sentence, instead of a comparison with half of it."""
    records = [*raw(lived(1, []))[:1], RawRecord(epoch=1, entries=(msgspec.Raw(b'{"type":"pondered"}'),))]
    with pytest.raises(TrunklineError, match="later version"):
        replay("turn_1", records)


@pytest.mark.anyio
async def test_the_replay_of_a_platforms_turn_matches_its_feed(tmp_path: Path) -> None:
    """The stored feed says the same; a feed that says something else is found; the command prints it all."""
    async with platform(tmp_path) as running:
        answer = await running.say("/tool write_file path=a.md content=x")
        keys = {"conversation": answer.accepted.conversation, "turn": answer.accepted.turn}
        records = [stored.data async for stored in running.bus.history(RAW_JOURNAL, **keys)]
        feed: list[FeedItem] = []
        with anyio.fail_after(60):
            while not (
                feed and isinstance(feed[-1].event, TurnEnded)
            ):  # a reader is told before it is stored
                feed = [stored.data async for stored in running.bus.history(FEED, **keys)]
        done: ReplayReport = replay(keys["turn"], records, feed)
        assert done.same and done.feed_same is True and done.text == answer.text
        assert replay(keys["turn"], records, list(map(_spoilt, feed))).feed_same is False
        assert replay(keys["turn"], records, feed[:-1]).feed_same is None


def test_the_replay_command_prints_and_exits_with_a_status(tmp_path: Path) -> None:
    """People's messages are printed only on request; an unknown turn is an error."""

    trunkline = partial(run_trunkline, tmp_path, **UNASKED)

    assert "There is no turn yet" in trunkline("replay", "last").stderr
    trunkline("say", "/tool write_file path=a.md content=x")
    shown = trunkline("replay", "last", "--text")
    assert shown.returncode == 0, shown.stderr
    assert (
        "entries: same  end: same  messages: same  feed: same" in shown.stdout
        and "Created a.md" in shown.stdout
    )
    found = json.loads(trunkline("replay", "last", "--json").stdout)
    assert found["same"] is True and "text" not in found
    assert found["records"][1]["commands"] == ["RunToolCall"]
    none = trunkline("replay", "turn_none")
    assert none.returncode == 1 and "There is no turn 'turn_none'" in none.stderr


def _spoilt(item: FeedItem) -> FeedItem:
    event = item.event
    if isinstance(event, TextDelta):
        event = msgspec.structs.replace(event, text=event.text.swapcase())
    return msgspec.structs.replace(item, event=event)
