"""Every worker and the server as separate processes, killed with SIGKILL at the worst moments.

The guarantees: an accepted message is answered exactly once, no effect happens twice, an interrupted write is reported
as unknown, a reader's stream has no gap and no repeat, the stored conversation has each message once and in order, and
the turn has one trace.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import ConversationView, MessageAccepted
from trunkline.contracts.turns.feed_messages import (
    FeedEvent,
    FeedItem,
    TextDelta,
    TextReset,
    ToolEnded,
    TurnEnded,
)
from trunkline.contracts.turns.journal_messages import (
    CancelRecorded,
    JournalEntry,
    ModelCallFinished,
    ModelCallPlanned,
    SteerRecorded,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnFact
from trunkline.contracts.turns.subjects import EFFECT, FEED, INBOX, JOURNAL, TURN_FACT
from trunkline.contracts.workers.messages import SpanRecord, WorkerHeartbeat
from trunkline.contracts.workers.subjects import SPANS, WORKER_BUCKET
from trunkline.testing.platform import text_of
from trunkline.workers.monitor.journal import RAW_JOURNAL
from trunkline.workers.monitor.replay import replay

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

OUTSIDE_EFFECT = '''
"""A tool whose effect is outside: it appends a line to a file, slowly, and says so before and after."""
import time
from pathlib import Path
import trunkline

@trunkline.tool(effect="write")
def transfer(file: str, amount: int, seconds: float = 0.0) -> str:
    """Move money: appends to a file."""
    with Path(file).open("a") as out:
        out.write(f"{amount}\\n")
    time.sleep(seconds)
    return f"moved {amount}"

@trunkline.tool(effect="read")
def look(file: str, seconds: float = 0.0) -> str:
    """Look, slowly; counts how often it was run."""
    with Path(file).open("a") as out:
        out.write("look\\n")
    time.sleep(seconds)
    return "seen"

@trunkline.hookimpl
def trunkline_tools():
    return [transfer, look]
'''

WORKERS = ("gateway", "monitor", "tools", "memory", "nats")


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    home = tmp_path_factory.mktemp("kills")
    async with process_platform(
        home, config=config, plugins={"transfer": OUTSIDE_EFFECT}, workers=ALL_WORKERS
    ) as running:
        yield running


class Watcher:
    """Follows a turn's feed like a client, and acts at a moment of it."""

    def __init__(self, running: ProcessPlatform, accepted: MessageAccepted) -> None:
        self.running = running
        self.accepted = accepted
        self.events: list[FeedEvent] = []

    async def until(self, due: Callable[["Watcher"], bool], act: Callable[[], Awaitable[None]]) -> None:
        """Read to the end; ``act`` once when ``due``."""
        acted = False
        with anyio.fail_after(60):
            async for event in self.running.gateway.watch(self.accepted.conversation, self.accepted.turn):
                self.events.append(event)
                if not acted and due(self):
                    acted = True
                    await act()
        assert acted, "the moment to act never came"

    @property
    def text(self) -> str:
        return text_of(self.events)

    def check_stream(self) -> None:
        """Offsets join without gap or repeat within each attempt, and the end comes once."""
        length: dict[int, int] = {}
        for event in self.events:
            if isinstance(event, TextReset):
                length[event.step] = 0
            elif isinstance(event, TextDelta):
                assert event.offset == length.get(event.step, 0), (event, length)
                length[event.step] = event.offset + len(event.text)
        assert sum(isinstance(event, TurnEnded) for event in self.events) == 1
        ended = [event.call_id for event in self.events if isinstance(event, ToolEnded)]
        assert len(ended) == len(set(ended))


async def kill_and_restart(running: ProcessPlatform, victim: str) -> None:
    running.kill(victim)
    if victim != "nats":
        await running.restart(victim)


async def view_of(running: ProcessPlatform, conversation: str) -> ConversationView:
    return await running.gateway.conversation(conversation, include_tools=True)


async def journal_of(running: ProcessPlatform, accepted: MessageAccepted) -> list[JournalEntry]:
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    return [entry async for s in running.bus.history(JOURNAL, after=0, **keys) for entry in s.data.entries]


async def check_turn(
    running: ProcessPlatform, accepted: MessageAccepted, roles: Iterable[str], *, owner_lived: bool = True
) -> ConversationView:
    """Check the invariants of any finished turn. An owner killed at the very end lost its own span."""
    view = await view_of(running, accepted.conversation)
    ids = [message.id for message in view.messages]
    assert len(ids) == len(set(ids)) and [message.role for message in view.messages] == list(roles)
    entries = await journal_of(running, accepted)
    assert sum(isinstance(entry, TurnFinished) for entry in entries) == 1
    assert sum(isinstance(entry, TurnStarted) for entry in entries) == 1
    with anyio.fail_after(60):
        while [s async for s in running.bus.history(INBOX, after=0, conversation=accepted.conversation)]:  # noqa: ASYNC110
            await anyio.sleep(0.05)
    if owner_lived:
        await check_one_trace(running, entries)
    return view


async def check_one_trace(running: ProcessPlatform, entries: list[JournalEntry]) -> None:
    """Spans of both owners are in the trace that the message began."""
    started = next(entry for entry in entries if isinstance(entry, TurnStarted))
    assert started.request.traceparent is not None
    trace = started.request.traceparent.split("-")[1]
    owners = 1 + sum(isinstance(entry, TurnResumed) for entry in entries)
    with anyio.move_on_after(60):
        while True:
            spans = [s async for b in running.bus.history(SPANS, after=0, trace=trace) for s in b.data.spans]
            epochs = {
                s.attributes["trunkline.turn.epoch"]
                for s in spans
                if s.name.startswith("invoke_agent") and not s.unfinished
            }
            if owners in epochs:
                return
            await anyio.sleep(0.1)
    raise AssertionError(f"no span of owner {owners} in trace {trace}: {[s.name for s in spans]}")


@pytest.mark.parametrize("victim", WORKERS)
async def test_killed_in_mid_stream(victim: str, module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """Any process is killed while text streams: the answer is complete, and the stream has no gap and no repeat."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send("slow:30:40")
        watcher = Watcher(running, accepted)
        await watcher.until(lambda w: len(w.events) >= 5, lambda: kill_and_restart(running, victim))
        watcher.check_stream()
        assert watcher.text.split() == [f"word-{n}" for n in range(1, 31)]
        view = await check_turn(running, accepted, ("user", "assistant"))
        assert view.messages[-1].content == watcher.text
        again = await running.say("say:still here", conversation=accepted.conversation)
        assert again.text == "still here"


async def test_spans_of_a_turn_whose_monitor_was_killed_have_their_parents(
    module_platform: ProcessPlatform,
) -> None:
    """A long span is announced while it is open, so its child spans have a parent."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send('call:list_dir {"path": "."} ;; slow:60:50')
        started = None
        with anyio.fail_after(60):
            while started is None:
                await anyio.sleep(0.02)
                entries = await journal_of(running, accepted)
                started = next((entry for entry in entries if isinstance(entry, TurnStarted)), None)
        assert started is not None and started.request.traceparent is not None
        trace = started.request.traceparent.split("-")[1]
        with anyio.fail_after(60):
            while (
                True
            ):  # a span that ended just before the kill is lost, and what was done below it lacks a parent
                spans = await spans_of(running, trace)
                if any(_is_open_turn(span) for span in spans) and not _orphans(spans):
                    break
                await anyio.sleep(0.02)
        await kill_and_restart(running, "monitor")
        assert (await running.answer(accepted)).ended.code is None
        await check_one_trace(running, await journal_of(running, accepted))
        with anyio.move_on_after(
            20
        ):  # the spans of the last steps are exported after the end of the turn is shown
            while _orphans(await spans_of(running, trace)):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        assert _orphans(await spans_of(running, trace)) == []


def _orphans(spans: list[SpanRecord]) -> list[str]:
    """The names of the spans whose parent is not reported."""
    reported = {span.span_id for span in spans}
    return [span.name for span in spans if span.parent_id and span.parent_id not in reported]


def _is_open_turn(span: SpanRecord) -> bool:
    return span.unfinished and span.name.startswith("invoke_agent")


async def spans_of(running: ProcessPlatform, trace: str) -> list[SpanRecord]:
    return [s async for batch in running.bus.history(SPANS, after=0, trace=trace) for s in batch.data.spans]


def program(tool: str, **arguments: Any) -> str:
    return f"say:Working. ;; call:{tool} {json.dumps(arguments)} ;; quote"


async def moment(path: Path) -> None:
    """Wait until the tool has begun to have its effect."""
    effect = anyio.Path(path)
    with anyio.fail_after(60):
        while not (await effect.exists() and await effect.read_text()):  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)


@pytest.mark.parametrize("victim", WORKERS)
async def test_killed_while_a_tool_has_its_effect(
    victim: str, module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """The effect happens once. If its own worker was killed, the model receives an unknown outcome; otherwise it
    gets the result."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "bank"
        accepted = await running.send(program("transfer", file=str(file), amount=7, seconds=1.5))
        watcher = Watcher(running, accepted)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.until, lambda w: True, anyio.lowlevel.checkpoint)
            await moment(file)
            await kill_and_restart(running, victim)
        watcher.check_stream()
        assert file.read_text() == "7\n"
        result = next(event for event in watcher.events if isinstance(event, ToolEnded))
        if victim == "tools":
            assert result.error and "unknown" in result.output.lower()
        else:
            assert result.output == "moved 7" and not result.error
        view = await check_turn(running, accepted, ("user", "assistant", "tool", "assistant"))
        assert view.messages[1].content == "Working." and view.messages[1].tool_calls


async def test_a_read_under_way_is_simply_run_again(module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """A tool without an effect needs no caution."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "looks"
        accepted = await running.send(program("look", file=str(file), seconds=1.0))
        watcher = Watcher(running, accepted)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.until, lambda w: True, anyio.lowlevel.checkpoint)
            await moment(file)
            await kill_and_restart(running, "tools")
        result = next(event for event in watcher.events if isinstance(event, ToolEnded))
        assert result.output == "seen" and file.read_text().splitlines() == ["look", "look"]
        await check_turn(running, accepted, ("user", "assistant", "tool", "assistant"))


STEPS = (ModelCallPlanned, ToolPlanned, ModelCallFinished, ToolFinished, TurnFinished)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_the_monitor_killed_between_journal_steps(
    step: type, module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """At the instant at which each kind of step is on disk, before the monitor does what follows from it."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "bank"
        killed = anyio.Event()

        async def on_record(received: Any) -> None:
            if not killed.is_set() and any(isinstance(entry, step) for entry in received.data.entries):
                killed.set()
                running.kill("monitor")

        subscription = await running.bus.subscribe(JOURNAL, on_record)
        accepted = await running.send(program("transfer", file=str(file), amount=3))
        with anyio.fail_after(60):
            await killed.wait()
        await subscription.aclose()
        await running.restart("monitor")
        answer = await running.answer(accepted)
        assert file.read_text() == "3\n"
        assert "moved 3" in answer.text
        roles = ("user", "assistant", "tool", "assistant")
        await check_turn(running, accepted, roles, owner_lived=step is not TurnFinished)


async def test_the_whole_platform_killed_at_once(module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """All five and the server together: after the restart the accepted message is answered."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "bank"
        accepted = await running.send(program("transfer", file=str(file), amount=5) + " ;; slow:20:40")
        await moment(file)
        for name in ("monitor", "gateway", "tools", "memory", "nats"):
            running.kill(name)
        for name in ("memory", "tools", "gateway", "monitor"):
            await running.restart(name)
        answer = await running.answer(accepted)
        assert answer.ended.reason == "stop" and file.read_text() == "5\n"
        await check_turn(running, accepted, ("user", "assistant", "tool", "assistant"))


async def test_a_second_monitor_takes_over_while_the_first_is_stopped(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """A monitor that is stopped long enough to lose its pin and then resumes must not answer a second time."""
    import signal

    async with shared_platform(module_platform) as running:
        accepted = await running.send("slow:40:50")
        watcher = Watcher(running, accepted)

        async def stop_first() -> None:
            running.kill("monitor", signal.SIGSTOP)
            await running.start("monitor", "second")

        await watcher.until(lambda w: len(w.events) >= 5, stop_first)
        running.kill("monitor", signal.SIGCONT)
        watcher.check_stream()
        assert watcher.text.split() == [f"word-{n}" for n in range(1, 41)]
        later = [await running.say(f"say:{n}", conversation=accepted.conversation) for n in range(3)]
        assert [answer.text for answer in later] == ["0", "1", "2"]
        await check_turn(running, accepted, ("user", "assistant") * 4)


async def test_an_accepted_message_waits_for_a_monitor(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """With no monitor at all a message is accepted, and answered once there is one; order is kept."""
    async with shared_platform(module_platform) as running:
        running.kill("monitor")
        first = await running.send("say:one")
        second = await running.send("say:two", conversation=first.conversation)
        await running.restart("monitor")
        assert [(await running.answer(a)).text for a in (first, second)] == ["one", "two"]
        view = await view_of(running, first.conversation)
        assert [m.content for m in view.messages] == ["say:one", "one", "say:two", "two"]


async def test_partitions_a_monitor_stops_pulling_are_reassigned(module_platform: ProcessPlatform) -> None:
    """A killed monitor counts as live until its last heartbeat is too old. A monitor that sends heartbeats without
    end and pulls nothing must not block a conversation."""
    async with shared_platform(module_platform) as running, anyio.create_task_group() as tasks:
        bucket = running.bus.kv(WORKER_BUCKET)
        beat = WorkerHeartbeat(
            id="ghost", kind="monitor", pid=1, host="ghost", version="0", started_at=datetime.now(UTC)
        )

        async def haunt() -> None:
            while True:
                await bucket.put(beat.id, beat)
                await anyio.sleep(0.5)

        await bucket.put(beat.id, beat)
        tasks.start_soon(haunt)
        running.kill("monitor")
        await running.restart("monitor")
        turns = [await running.send(f"say:{number}") for number in range(24)]  # some in each partition
        assert [(await running.answer(one)).text for one in turns] == [str(number) for number in range(24)]
        tasks.cancel_scope.cancel()
        await bucket.delete(beat.id)


async def test_the_ledger_holds_each_write_once(module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """Three parallel writes and a killed monitor: three started, three finished, three effects."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "bank"
        calls = " ".join(
            f"transfer {json.dumps({'file': str(file), 'amount': n, 'seconds': 0.8})}" for n in (1, 2, 3)
        )
        before = await running.bus.last_seq(EFFECT)
        accepted = await running.send(f"parallel:{calls} ;; say:done")
        await moment(file)
        await kill_and_restart(running, "monitor")
        answer = await running.answer(accepted)
        assert sorted(file.read_text().split()) == ["1", "2", "3"]
        results = [event.output for event in answer.events if isinstance(event, ToolEnded)]
        assert sorted(results) == ["moved 1", "moved 2", "moved 3"]
        records = [s.data async for s in running.bus.history(EFFECT, after=before)]
        assert len(records) == 6


async def test_turns_that_were_killed_steered_or_ended_can_be_driven_again(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """For a turn whose monitor was killed, one that was steered and one ended during its text, a replay reproduces
    the journal byte for byte and the stored feed."""
    async with shared_platform(module_platform) as running:
        look = f'call:look {{"file": "{tmp_path / "looks"}"}}'
        killed = Watcher(running, await running.send(f"{look} ;; slow:20:50"))
        await killed.until(lambda w: "word-5" in w.text, lambda: kill_and_restart(running, "monitor"))

        steered = Watcher(running, await running.send("slow:15:50"))

        async def steer() -> None:
            await running.send(
                "say:more", conversation=steered.accepted.conversation, steer=steered.accepted.turn
            )

        await steered.until(lambda w: "word-3" in w.text, steer)
        ended = Watcher(running, await running.send(f"{look} ;; slow:200:50"))
        await ended.until(lambda w: "word-3" in w.text, lambda: running.gateway.cancel(ended.accepted.turn))
        for watcher, kind in ((killed, TurnResumed), (steered, SteerRecorded), (ended, CancelRecorded)):
            entries = await journal_of(running, watcher.accepted)
            assert any(isinstance(entry, kind) for entry in entries), kind
            keys = {"conversation": watcher.accepted.conversation, "turn": watcher.accepted.turn}
            raw = [stored.data async for stored in running.bus.history(RAW_JOURNAL, **keys)]
            done = replay(watcher.accepted.turn, raw, await feed_of(running, **keys))
            assert [record.problem for record in done.records if not record.same] == [], kind
            assert (done.end_same, done.messages_same, done.feed_same) == (True, True, True), kind
            assert done.text == watcher.text


async def feed_of(running: ProcessPlatform, **keys: str) -> list[FeedItem]:
    """Return the feed of an ended turn, once its end is stored: readers receive it before that."""
    with anyio.fail_after(60):
        while True:
            feed = [stored.data async for stored in running.bus.history(FEED, **keys)]
            if any(isinstance(item.event, TurnEnded) for item in feed):
                return feed
            await anyio.sleep(0.05)


DIES_UNTOLD = '''
"""Ends the monitor's process in the place of its telling that a turn ended, once."""
import os
from pathlib import Path
import trunkline

class Dying:
    async def __call__(self, message, proceed):
        here = Path(__file__).with_name("died")
        if message.direction == "out" and message.subject.endswith(".finished") and not here.exists():
            here.touch()
            os._exit(9)
        await proceed(message)

@trunkline.hookimpl
def trunkline_bus_middleware():
    return [Dying()]
'''


async def test_a_turn_end_unpublished_by_a_killed_monitor_is_published(tmp_path: Path) -> None:
    """Subscribers that build memories or statistics receive every ended turn, even when its owner died before
    publishing."""
    config = {"runtime.provider_adapter": "offline"}
    async with process_platform(
        tmp_path / "home", config=config, plugins={"dies": DIES_UNTOLD}, workers=ALL_WORKERS
    ) as running:
        accepted = await running.send("hello")
        await running.processes["monitor"].gone()
        await running.start("monitor")
        heard: list[TurnFact] = []
        with anyio.fail_after(60):
            while not heard:
                await anyio.sleep(0.05)
                heard = [reported.data async for reported in running.bus.history(TURN_FACT, fact="finished")]
        [reported] = heard
        assert reported.turn == accepted.turn and reported.reason == "stop"


KILLS_SERVER = '''
"""Kills the NATS server right WHEN the monitor publishes that a turn finished, once."""
import os
import signal
from pathlib import Path
import trunkline

KILLED = Path(__file__).with_name("killed")
SERVER = Path(__file__).parents[1] / "bus/server.pid"

class Killer:
    async def __call__(self, message, proceed):
        due = message.direction == "out" and message.subject.endswith(".finished") and not KILLED.exists()
        if due and "WHEN" == "before":
            self.kill()
        await proceed(message)
        if due and "WHEN" == "after":
            self.kill()

    def kill(self):
        KILLED.touch()
        os.kill(int(SERVER.read_text()), signal.SIGKILL)

@trunkline.hookimpl
def trunkline_bus_middleware():
    return [Killer()]
'''


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_event_of_a_finished_turn_survives_a_server_kill(when: str, tmp_path: Path) -> None:
    """The server is killed as the fact is published: the monitor stores the fact until a server has it."""
    plugins = {"kills": KILLS_SERVER.replace("WHEN", when)}
    config = {"runtime.provider_adapter": "offline"}
    async with process_platform(
        tmp_path / "home", config=config, plugins=plugins, workers=ALL_WORKERS
    ) as running:
        turns = [(await running.say("hello")).accepted.turn for _ in range(2)]
        facts: list[TurnFact] = []
        with anyio.fail_after(60):
            while {fact.turn for fact in facts} != {*turns}:
                await anyio.sleep(0.05)
                facts = [stored.data async for stored in running.bus.history(TURN_FACT, fact="finished")]
