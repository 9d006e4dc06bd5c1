"""Cases found by a hostile reviewer with real processes: workers killed, stopped and drained at the worst moments."""

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import ApprovalRequested, TextDelta
from trunkline.contracts.turns.journal_messages import JournalEntry, ModelCallPlanned, TurnFinished
from trunkline.contracts.turns.subjects import INBOX, JOURNAL

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


PLUGIN = '''
"""A tool with an effect outside, slow, and a gate that wants a person's yes for it when it is asked to."""
import time
from pathlib import Path
import trunkline
from trunkline.contracts.tools.messages import ToolOutcome

@trunkline.tool(effect="write")
def transfer(file: str, amount: int, seconds: float = 0.0, ask: bool = False) -> str:
    """Move money: appends to a file."""
    with Path(file).open("a") as out:
        out.write(f"{amount}\\n")
    time.sleep(seconds)
    return f"moved {amount}"

class AskFirst:
    stage = "gate"

    async def __call__(self, invocation, proceed):
        if not invocation.arguments.get("ask") or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call, status="approval", call_hash=invocation.call_hash, question="Really?"
        )

@trunkline.hookimpl
def trunkline_tools():
    return [transfer]

@trunkline.hookimpl
def trunkline_tool_middleware():
    return [AskFirst()]
'''


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    home = tmp_path_factory.mktemp("hostile")
    async with process_platform(
        home, config=config, plugins={"transfer": PLUGIN}, workers=ALL_WORKERS
    ) as running:
        yield running


def program(file: Path, amount: int, *, seconds: float = 0.0, ask: bool = False) -> str:
    return (
        f"call:transfer {json.dumps({'file': str(file), 'amount': amount, 'seconds': seconds, 'ask': ask})}"
    )


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not await check():  # noqa: ASYNC110 - what is waited for is in other processes
            await anyio.sleep(0.02)


async def entries_of(running: ProcessPlatform, accepted: MessageAccepted) -> list[JournalEntry]:
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    return [entry async for s in running.bus.history(JOURNAL, after=0, **keys) for entry in s.data.entries]


async def first_of(running: ProcessPlatform, accepted: MessageAccepted, kind: type) -> Any:
    with anyio.fail_after(60):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, kind):
                return event
    raise AssertionError(f"no {kind.__name__} came")


async def inbox_is_empty(running: ProcessPlatform, accepted: MessageAccepted) -> bool:
    return not [s async for s in running.bus.history(INBOX, after=0, conversation=accepted.conversation)]


async def stored_in(running: ProcessPlatform, accepted: MessageAccepted) -> list[str]:
    view = await running.gateway.conversation(accepted.conversation)
    return [message.content for message in view.messages if message.content]


async def test_a_monitor_killed_after_a_decision(module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """A turn resumed by a decision is not lost: it continues at the next monitor, and its call runs once."""
    async with shared_platform(module_platform) as running:
        file = tmp_path / "bank"
        accepted = await running.send(f"{program(file, 7, seconds=1.0, ask=True)} ;; say:done")
        asked: ApprovalRequested = await first_of(running, accepted, ApprovalRequested)
        await until(lambda: inbox_is_empty(running, accepted))
        await running.gateway.decide(accepted.turn, asked.call.id, asked.call_hash, allow=True)
        await until(lambda: anyio.Path(file).exists())
        running.kill("monitor")
        await running.restart("monitor")
        answer = await running.answer(accepted)
        assert answer.text == "done" and file.read_text() == "7\n"
        await until(lambda: inbox_is_empty(running, accepted))


async def test_memory_away_when_the_answer_is_to_be_stored(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """The turn waits for memory; nothing of the answer is lost, and done means stored."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send("slow:10:50")
        await first_of(running, accepted, TextDelta)
        running.kill("memory")
        await anyio.sleep(11)  # longer than one attempt to store takes
        await running.restart("memory")
        answer = await running.answer(accepted)
        assert answer.ended.reason == "stop" and answer.ended.code is None
        assert await stored_in(running, accepted) == ["slow:10:50", answer.text]


async def test_a_draining_monitor_finishes_its_turn(module_platform: ProcessPlatform, tmp_path: Path) -> None:
    """With another monitor there, what runs ends where it began, and what waits behind it is answered by the other."""
    async with shared_platform(module_platform) as running:
        await running.start("monitor", "second")
        first = await running.send("slow:30:100")
        await first_of(running, first, TextDelta)
        owner = await owner_of(running, first)
        second = await running.send("say:two", conversation=first.conversation)
        await anyio.sleep(0.2)
        running.kill(owner, signal.SIGTERM)
        answers = [await running.answer(accepted) for accepted in (first, second)]
        assert answers[0].text.split() == [f"word-{n}" for n in range(1, 31)] and answers[1].text == "two"
        planned = [e for e in await entries_of(running, first) if isinstance(e, ModelCallPlanned)]
        assert len(planned) == 1, "the model was asked again"
        assert await running.processes[owner].gone() == 0
        assert await stored_in(running, first) == ["slow:30:100", answers[0].text, "say:two", "two"]


async def owner_of(running: ProcessPlatform, accepted: MessageAccepted) -> str:
    """The name of the process whose journal record is the turn's last."""
    last = await running.bus.last(JOURNAL, conversation=accepted.conversation, turn=accepted.turn)
    assert last is not None
    from trunkline.contracts.workers.subjects import WORKER_BUCKET

    entry = await running.bus.kv(WORKER_BUCKET).get(last.data.owner)
    assert entry is not None and entry.value is not None
    return next(name for name, process in running.processes.items() if process.pid == entry.value.pid)


async def test_a_cancel_while_its_monitor_is_leaving(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """It ends the turn now, not when the leaving monitor is done with it."""
    async with shared_platform(module_platform) as running:
        await running.start("monitor", "second")
        accepted = await running.send("slow:300:100")
        await first_of(running, accepted, TextDelta)
        owner = await owner_of(running, accepted)
        running.kill(owner, signal.SIGTERM)
        await anyio.sleep(1.5)
        with anyio.fail_after(60):
            await running.gateway.cancel(accepted.turn)
            answer = await running.answer(accepted)
        assert answer.ended.reason == "cancelled"
        ends = [e for e in await entries_of(running, accepted) if isinstance(e, TurnFinished)]
        assert len(ends) == 1
        stored = (await running.gateway.conversation(accepted.conversation)).messages[-1]
        assert stored.partial and stored.content == answer.text and answer.text.startswith("word-1 word-2")
        assert (await running.say("say:on", conversation=accepted.conversation)).text == "on"
        assert await running.processes[owner].gone() == 0


@pytest.mark.parametrize("stopped", ["before it is asked for", "after the yes"])
async def test_an_approval_counts_once_while_the_tools_worker_is_suspended(
    module_platform: ProcessPlatform, tmp_path: Path, stopped: str
) -> None:
    """The worker is stopped for longer than the monitor waits for a sign of it, so calls are sent again and again. Each
    is asked about once, and the first yes runs it once."""
    async with shared_platform(module_platform) as running:
        files = [tmp_path / f"bank-{number}" for number in range(6)]
        if stopped == "before it is asked for":
            running.kill("tools", signal.SIGSTOP)
        turns = [await running.send(f"{program(file, 7, ask=True)} ;; say:done") for file in files]
        if stopped == "before it is asked for":
            await anyio.sleep(4)
            running.kill("tools", signal.SIGCONT)
        asked = [await first_of(running, accepted, ApprovalRequested) for accepted in turns]
        if stopped == "after the yes":
            running.kill("tools", signal.SIGSTOP)
        for accepted, one in zip(turns, asked, strict=True):
            await running.gateway.decide(accepted.turn, one.call.id, one.call_hash, allow=True)
        if stopped == "after the yes":
            await anyio.sleep(7)
            running.kill("tools", signal.SIGCONT)
        for accepted, file in zip(turns, files, strict=True):
            answer = await running.answer(accepted)
            assert answer.text == "done" and file.read_text() == "7\n"
            questions = [event for event in answer.events if isinstance(event, ApprovalRequested)]
            assert len(questions) == 1, "it was asked again"
