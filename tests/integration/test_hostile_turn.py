"""What a hostile reviewer found with real processes: workers killed, stopped and drained at moments nobody likes."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.messages.gateway import MessageAccepted
from trunkline.messages.turn import (
    ApprovalRequested,
    TextDelta,
)
from trunkline.subjects import INBOX
from trunkline.testing.processes import ProcessPlatform, process_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


PLUGIN = '''
"""A tool with an effect outside, slow, and a gate that wants a person's yes for it when it is asked to."""
import time
from pathlib import Path
import trunkline
from trunkline.messages.tools import ToolOutcome

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


@asynccontextmanager
async def processes(provider: str, home: Path, **given: Any) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        **given,
    }
    kinds = ("gateway", "monitor", "tools", "memory")
    async with process_platform(home, config=config, plugins={"transfer": PLUGIN}, workers=kinds) as running:
        try:
            yield running
        except BaseException:
            print(running.logs()[-20_000:])  # noqa: T201 - pytest shows it with the failure
            raise


def program(file: Path, amount: int, *, seconds: float = 0.0, ask: bool = False) -> str:
    return (
        f"call:transfer {json.dumps({'file': str(file), 'amount': amount, 'seconds': seconds, 'ask': ask})}"
    )


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    with anyio.fail_after(seconds):
        while not await check():  # noqa: ASYNC110 - what is waited for is in other processes
            await anyio.sleep(0.02)


async def first_of(running: ProcessPlatform, accepted: MessageAccepted, kind: type) -> Any:
    with anyio.fail_after(20):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, kind):
                return event
    raise AssertionError(f"no {kind.__name__} came")


async def inbox_is_empty(running: ProcessPlatform, accepted: MessageAccepted) -> bool:
    return not [s async for s in running.bus.history(INBOX, after=0, conversation=accepted.conversation)]


async def stored_in(running: ProcessPlatform, accepted: MessageAccepted) -> list[str]:
    view = await running.gateway.conversation(accepted.conversation)
    return [message.content for message in view.messages if message.content]


async def test_a_monitor_killed_after_a_decision(provider: str, tmp_path: Path) -> None:
    """A turn that a decision woke is not forgotten: it goes on at the next monitor, and its call runs once."""
    async with processes(provider, tmp_path / "home") as running:
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


async def test_memory_away_when_the_answer_is_to_be_stored(provider: str, tmp_path: Path) -> None:
    """The turn waits for memory; nothing of the answer is lost, and done means stored."""
    async with processes(provider, tmp_path / "home") as running:
        accepted = await running.send("slow:10:50")
        await first_of(running, accepted, TextDelta)
        running.kill("memory")
        await anyio.sleep(14)
        await running.restart("memory")
        answer = await running.answer(accepted)
        assert answer.ended.reason == "stop" and answer.ended.code is None
        assert await stored_in(running, accepted) == ["slow:10:50", answer.text]
