"""Schedules on a whole platform: files become timers, due times become turns, and what became of them is shown."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

import anyio
import pytest
from msgspec.structs import replace

from tests.block_client import BlockClient, client_of_new_block
from trunkline.api.gateway import GatewayClient
from trunkline.api.memory import utc_now
from trunkline.api.sandbox import KillSwitch
from trunkline.api.schedule import SCHEDULE_CHANNEL, SCHEDULE_DUE, SCHEDULE_TIMER, ScheduleDue, ScheduleRun
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.testing.platform import Platform
from trunkline_bus import Request, service
from trunkline_pulse.armer import Armer
from trunkline_pulse.run_starter import RunStarter
from trunkline_pulse.schedule_changes import run_now
from trunkline_pulse.schedule_store import ScheduleStore

from .pulse_platform import ended_run, pulse_platform, state_when, texts_of, until, write_schedule_file

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    async with pulse_platform() as running:
        yield running


@pytest.fixture
async def client(shared: Platform) -> BlockClient:
    return await client_of_new_block(shared)


QUESTION = 'call:ask_human {\\"question\\": \\"Well?\\"} ;; say:done'
"""An instruction whose run waits for its owner."""


def once(seconds: float = 4.0) -> str:
    """The line of a file that is due once, so many seconds from now."""
    return f"at = {utc_now() + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}\n"


async def test_MB_F6_a_due_time_becomes_a_turn_in_the_background(client: BlockClient) -> None:
    """A file that a person writes is armed; its message reaches the agent through the gateway, and its end is shown."""
    await write_schedule_file(client.bus, client.block, "hello", f'instruction = "say:hello"\n{once()}')
    run = await ended_run(client, "hello")
    assert run.outcome == "finished" and await texts_of(client, run) == ["say:hello", "hello"]
    state = await state_when(client, "hello", lambda state: state.next_due is None)
    assert not state.claimed


async def test_MB_F6_an_interval_beats_at_once_until_it_is_removed(
    client: BlockClient,
) -> None:
    """The first beat is at the start of the interval. A file that is deleted takes its timer and state with it."""
    start = f"{utc_now():%Y-%m-%dT%H:%M:%SZ}"
    await write_schedule_file(
        client.bus, client.block, "beat", f'instruction = "say:beat"\nevery = 3600\nstart = {start}\n'
    )
    run = await ended_run(client, "beat")
    assert f"{run.due_at:%Y-%m-%dT%H:%M:%SZ}" == start
    assert await client.bus.last_seq(SCHEDULE_TIMER, block=client.block, schedule="beat")
    await write_schedule_file(client.bus, client.block, "beat", "")
    await until(lambda: _is_gone(client, "beat"))
    assert not await client.bus.last_seq(SCHEDULE_TIMER, block=client.block, schedule="beat")


async def test_MB_F5_the_status_of_a_block_names_its_next_wake_up(client: BlockClient) -> None:
    """The next due time of all schedules of the block; a paused schedule has none."""
    text = f'instruction = "x"\nat = {utc_now() + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "later", text)
    state = await state_when(client, "later", lambda state: state.next_due is not None)

    async def next_wake_up() -> bool:
        return (await client.gateway.block(client.block)).pulse.next_wake_up == state.next_due

    await until(next_wake_up)
    await write_schedule_file(client.bus, client.block, "later", f"enabled = false\n{text}")
    await state_when(client, "later", lambda state: state.next_due is None)


async def test_MB_F6_a_log_entry_is_a_call_that_adds_a_line(client: BlockClient) -> None:
    """No model is called; the line has the time and the name of the schedule."""
    await write_schedule_file(
        client.bus, client.block, "note", f'type = "log"\ninstruction = "all well"\n{once()}'
    )
    assert (await ended_run(client, "note")).outcome == "finished"
    log = (await block_memory(client.bus, client.block, "owner").read("pulse.log")).content
    assert log.endswith(" note all well\n")


async def test_MB_D12_several_schedules_are_due_in_the_same_moment(client: BlockClient) -> None:
    """Each has its own turn (MB-D12, MB-T16)."""
    line = once(2)
    for number in range(5):
        await write_schedule_file(
            client.bus, client.block, f"same-{number}", f'instruction = "say:{number}"\n{line}'
        )
    runs = [await ended_run(client, f"same-{number}") for number in range(5)]
    assert len({run.turn for run in runs}) == 5 and len({run.due_at for run in runs}) == 1


async def test_a_quiet_heartbeat_is_archived_and_a_condition_passes_a_time(client: BlockClient) -> None:
    """All quiet: the run is marked so, and its conversation is not in the list. A false condition starts nothing."""
    text = 'type = "heartbeat"\ninstruction = "say:ALL QUIET"\n'
    await write_schedule_file(client.bus, client.block, "heart", text + once())
    await write_schedule_file(
        client.bus, client.block, "never", f'instruction = "x"\ncondition = "uptime < 0"\n{once()}'
    )
    run = await ended_run(client, "heart")
    assert run.outcome == "quiet"
    assert (await client.gateway.conversation(run.conversation)).summary.archived
    state = await state_when(client, "never", lambda state: state.next_due is None)
    assert not state.runs


async def test_a_broken_file_is_named_with_its_line_and_the_others_run(client: BlockClient) -> None:
    """The state has the problem until the file is corrected."""
    broken = 'instruction = "x"\ncron = "0 25 * * *"\n'
    await write_schedule_file(client.bus, client.block, "broken", broken)
    await write_schedule_file(client.bus, client.block, "fine", f'instruction = "say:fine"\n{once()}')
    assert (await ended_run(client, "fine")).outcome == "finished"
    state = await state_when(client, "broken", lambda state: bool(state.problem))
    assert "broken.toml, line 2: '0 25 * * *' is no cron line" in state.problem and state.next_due is None
    await write_schedule_file(client.bus, client.block, "broken", broken.replace("25", "5"))
    await state_when(client, "broken", lambda state: not state.problem and state.next_due is not None)


async def test_a_run_by_hand_and_a_queue_share_one_conversation(client: BlockClient) -> None:
    """The runs of a queue are turns of one conversation, in order. A paused schedule can be run by hand."""
    end = f"{utc_now() + timedelta(seconds=3):%Y-%m-%dT%H:%M:%SZ}"
    text = f'instruction = "say:q"\nevery = 1\noverlap = "queue"\nexpires = {end}\n'
    await write_schedule_file(client.bus, client.block, "queue", text)
    await ended_run(client, "queue", 2)
    state = await state_when(client, "queue", lambda state: state.next_due is None)
    assert {run.conversation for run in state.runs} == {state.conversation}
    await write_schedule_file(
        client.bus, client.block, "paused", 'instruction = "say:p"\nevery = 60\nenabled = false\n'
    )
    await state_when(client, "paused", lambda state: True)
    await run_now(client.bus, "paused", client.block)
    run = await ended_run(client, "paused")
    assert run.outcome == "finished" and await texts_of(client, run) == ["say:p", "p"]
    text = 'instruction = "say:h"\nevery = 60\noverlap = "queue"\nenabled = false\n'
    await write_schedule_file(client.bus, client.block, "by-hand", text)
    for number in (1, 2):
        await run_now(client.bus, "by-hand", client.block)
        run = await ended_run(client, "by-hand", number)
    assert await texts_of(client, run) == ["say:h", "h", "say:h", "h"]


async def test_nothing_runs_during_panic_and_what_was_missed_is_reported(
    shared: Platform, client: BlockClient
) -> None:
    """While the kill switch is engaged a due time starts nothing; after its release the due time runs."""
    switch = KillSwitch(shared.home.path)
    await write_schedule_file(client.bus, client.block, "held", f'instruction = "say:held"\n{once(2)}')
    switch.engage("test")
    try:
        state = await state_when(client, "held", lambda state: state.next_due is not None)
        while utc_now() < (state.next_due or utc_now()) + timedelta(seconds=1):  # noqa: ASYNC110  the clock has no event
            await anyio.sleep(0.1)
        found = await state_when(client, "held", lambda state: True)
        assert found.next_due is not None and not found.runs
    finally:
        switch.release()
    assert (await ended_run(client, "held")).outcome == "finished"


async def test_PA_F30_a_webhook_is_no_command_and_a_schedule_may_be_one(client: BlockClient) -> None:
    """Messages, webhooks and schedules enter by the same service and each creates a conversation. A program's text is
    never carried out."""
    command = "/tool get_current_time"
    by_person = await client.say(command)
    by_webhook = await client.say(command, trigger="webhook")
    await write_schedule_file(client.bus, client.block, "clock", f'instruction = "{command}"\n{once()}')
    run = await ended_run(client, "clock")
    assert (
        "get_current_time says" in by_person.text
        and "get_current_time says" in (await texts_of(client, run))[-1]
    )
    assert "get_current_time says" not in by_webhook.text
    conversations = {by_person.accepted.conversation, by_webhook.accepted.conversation, run.conversation}
    assert len(conversations) == 3


@pytest.mark.parametrize(
    ("missed", "started", "lost"), [("skip", [], 4), ("once", [10], 3), ("all", [190, 130, 70, 10], 0)]
)
async def test_missed_times_are_reported_and_made_up_for(
    client: BlockClient, missed: str, started: list[int], lost: int
) -> None:
    """After three hours in which nothing ran, each policy runs what it says and reports the others."""
    now = utc_now().replace(microsecond=0)
    first = now - timedelta(minutes=190)
    text = f'instruction = "say:m"\nevery = 3600\nstart = {first:%Y-%m-%dT%H:%M:%SZ}\n'
    text += f'missed = "{missed}"\noverlap = "parallel"\n'
    await write_schedule_file(client.bus, client.block, "missed", text)
    await state_when(client, "missed", lambda state: state.next_due is not None)
    store = ScheduleStore(client.bus)
    await store.change(client.block, "missed", lambda state: replace(state, next_due=first))
    due = ScheduleDue(block=client.block, name="missed", due_at=first)
    await client.bus.append(SCHEDULE_DUE, due, block=client.block, schedule="missed")
    state = await state_when(
        client, "missed", lambda state: state.next_due > now and not state.claimed and state.runs
    )
    assert state.next_due == first + timedelta(hours=4)
    runs = [run.due_at for run in state.runs if run.turn]
    assert runs == [now - timedelta(minutes=minutes) for minutes in started]
    assert sum(run.count for run in state.runs if run.outcome == "missed") == lost


async def test_a_time_is_skipped_while_the_previous_run_lasts(client: BlockClient) -> None:
    """The first run waits for its owner, so the next due times are recorded as skipped, in one entry: a list of them
    would push the run that lasts out of the state, and the next due time would run beside it."""
    await write_schedule_file(client.bus, client.block, "slow", f'instruction = "{QUESTION}"\nevery = 1\n')
    state = await state_when(client, "slow", lambda state: len(state.runs) >= 2 and state.runs[-1].count >= 2)
    assert [run.outcome for run in state.runs] == ["started", "skipped"]
    assert state.runs[1].detail == "The previous run had not ended."
    await write_schedule_file(client.bus, client.block, "slow", "")
    await client.gateway.cancel(state.runs[0].turn)


async def test_a_claimed_time_runs_whatever_the_previous_run_does(client: BlockClient) -> None:
    """Whether a due time is skipped is decided with its claim. Whoever completes the claim of a killed gateway, which
    may have sent the message already, reports no turn as skipped."""
    start = utc_now().replace(microsecond=0)
    text = f'instruction = "{QUESTION}"\nevery = 3600\nstart = {start:%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "claimed", text)
    state = await state_when(client, "claimed", lambda state: state.runs)
    due, after = start + timedelta(hours=1), start + timedelta(hours=2)
    await ScheduleStore(client.bus).change(
        client.block, "claimed", lambda state: replace(state, claimed=(due,), next_due=after)
    )
    message = ScheduleDue(block=client.block, name="claimed", due_at=due)
    await client.bus.append(SCHEDULE_DUE, message, block=client.block, schedule="claimed")
    state = await state_when(client, "claimed", lambda state: len(state.runs) == 2 and not state.claimed)
    assert [(run.due_at, run.outcome) for run in state.runs] == [(start, "started"), (due, "started")]
    for run in state.runs:
        await client.gateway.cancel(run.turn)


async def test_a_claim_outlives_a_wrong_file(client: BlockClient) -> None:
    """A gateway died with a claim, and the file was wrong when the message came again: the due time runs once the file
    is corrected."""
    due = utc_now().replace(microsecond=0) + timedelta(days=1)
    text = f'instruction = "say:late"\nat = {due:%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "claim", text)
    await state_when(client, "claim", lambda state: state.next_due == due)
    await write_schedule_file(client.bus, client.block, "claim", f"{text}cron = 7\n")
    await state_when(client, "claim", lambda state: bool(state.problem))
    await ScheduleStore(client.bus).change(
        client.block, "claim", lambda state: replace(state, claimed=(due,), next_due=None)
    )
    message = ScheduleDue(block=client.block, name="claim", due_at=due)
    await client.bus.append(SCHEDULE_DUE, message, block=client.block, schedule="claim")
    await anyio.sleep(0.5)  # it is acknowledged, and nothing tells of that
    await write_schedule_file(client.bus, client.block, "claim", text)
    run = await ended_run(client, "claim")
    assert (run.due_at, run.outcome) == (due, "finished")


async def test_a_timer_of_an_older_state_replaces_none_of_a_newer(client: BlockClient) -> None:
    """A gateway that arms what it read before the file was changed arms it anew."""
    far, near = utc_now() + timedelta(days=1), utc_now() + timedelta(seconds=6)
    text = 'instruction = "say:soon"\nat = {at:%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "timer", text.format(at=far))
    old = await state_when(client, "timer", lambda state: state.next_due is not None)
    source = await ScheduleStore(client.bus).find(client.block, "timer")
    await write_schedule_file(client.bus, client.block, "timer", text.format(at=near))
    await state_when(client, "timer", lambda state: state.version != old.version)

    async def report(found: object) -> None:
        raise AssertionError("the file is right")

    assert source is not None and source.schedule is not None
    await Armer(client.bus, ScheduleStore(client.bus), ZoneInfo("UTC"), report).arm(old, source.schedule)
    assert (await ended_run(client, "timer")).outcome == "finished"


async def test_a_claim_by_hand_begins_the_conversation_of_a_queue(client: BlockClient) -> None:
    """A gateway that was killed after it sent the message of the first run, by hand, left its claim. The due time that
    comes next completes it before it runs itself, so both are turns of one conversation, and each is one turn."""
    start = utc_now().replace(microsecond=0)
    text = f'instruction = "say:q"\noverlap = "queue"\nevery = 3600\nstart = {start:%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "first", f"enabled = false\n{text}")
    paused = await state_when(client, "first", lambda state: True)
    by_hand, due = utc_now(), start + timedelta(hours=1)
    source = await ScheduleStore(client.bus).find(client.block, "first")
    assert source is not None and source.schedule is not None
    gateway = GatewayClient(client.bus, SCHEDULE_CHANNEL)
    sent = await RunStarter(gateway).start(paused, source.schedule, by_hand, by_hand=True)
    await ScheduleStore(client.bus).change(
        client.block,
        "first",
        lambda state: replace(state, claimed=(by_hand,), claimed_by_hand=True, next_due=due),
    )
    for message in (
        ScheduleDue(block=client.block, name="first", due_at=due),
        ScheduleDue(block=client.block, name="first", due_at=by_hand, by_hand=True),
    ):
        await client.bus.append(SCHEDULE_DUE, message, block=client.block, schedule="first")
    await ended_run(client, "first", 2)
    state = await state_when(client, "first", lambda state: state.next_due != due and not state.claimed)
    assert [run.due_at for run in state.runs] == [by_hand, due]
    assert (state.runs[0].turn, state.runs[0].conversation) == (sent.turn, sent.conversation)
    assert await texts_of(client, state.runs[1]) == ["say:q", "q", "say:q", "q"]


async def test_a_changed_file_repeats_no_due_time(client: BlockClient) -> None:
    """An interval that began within the last minute is changed: the beat at its beginning was already run."""
    start = utc_now().replace(microsecond=0)
    text = f'instruction = "say:beat"\nevery = 3600\nstart = {start:%Y-%m-%dT%H:%M:%SZ}\n'
    await write_schedule_file(client.bus, client.block, "changed", text)
    first = await ended_run(client, "changed")
    before = await state_when(client, "changed", lambda state: True)
    await write_schedule_file(client.bus, client.block, "changed", text.replace("say:beat", "say:changed"))
    state = await state_when(client, "changed", lambda state: state.version != before.version)
    assert state.next_due == start + timedelta(hours=1)
    assert [run.turn for run in state.runs] == [first.turn]


async def _is_gone(client: BlockClient, name: str) -> bool:
    return await ScheduleStore(client.bus).state(client.block, name) is None


async def test_MB_F22_a_schedule_tells_the_owner_through_its_channel(client: BlockClient) -> None:
    """The result goes to the channel that the file names, and to no other (MB-T15)."""
    told: list[tuple[str, str]] = []

    async def tell(channel: str, request: Request[TellOwner]) -> CommandSucceeded:
        told.append((channel, request.data.text))
        return CommandSucceeded()

    async with service(client.bus, name="channels", version="1") as channels:
        for name in ("telegram", "slack"):
            await channels.add(TELL_OWNER, partial(tell, name), channel=name)
        text = f'instruction = "say:good morning"\nchannel = "telegram"\n{once()}'
        await write_schedule_file(client.bus, client.block, "briefing", text)
        await ended_run(client, "briefing")
    assert told == [("telegram", "briefing: good morning")]


async def test_a_run_that_has_ended_hides_none_that_lasts(client: BlockClient) -> None:
    """A run by hand may begin after the one that still runs, and end before it: the next due times are skipped."""
    await write_schedule_file(client.bus, client.block, "hidden", f'instruction = "{QUESTION}"\nevery = 1\n')
    state = await state_when(client, "hidden", lambda state: state.runs)
    lasting = state.runs[0].turn
    ended = ScheduleRun(due_at=utc_now(), outcome="finished", turn="turn_ended", conversation="conv_ended")
    store = ScheduleStore(client.bus)
    await store.change(client.block, "hidden", lambda state: replace(state, runs=(*state.runs, ended)))
    state = await state_when(client, "hidden", lambda state: state.runs[-1].outcome == "skipped")
    state = await state_when(client, "hidden", lambda state: state.runs[-1].count >= 2)
    assert [run.turn for run in state.runs if run.outcome == "started"] == [lasting]
    await write_schedule_file(client.bus, client.block, "hidden", "")
    await client.gateway.cancel(lasting)
