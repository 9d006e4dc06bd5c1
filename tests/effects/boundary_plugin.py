"""The plugin that stops calls at a boundary: tools with an effect outside, and a middleware on every worker's bus.

It is loaded by the workers as a separate file, so it imports nothing of the tests. A call's ``mark`` names its wave and
its boundary: ``wave.number@boundary``. Stopped there, once, it leaves a file ``held/MARK`` with the process id, and
continues when ``go/WAVE`` exists. At a boundary ``… flying`` it continues by sending its record and killing its own
process before it can have read the answer, or soon after.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

import trunkline
from trunkline.contracts.tools.messages import CallTool, EffectFinished, EffectStarted, ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    ToolFinished,
    ToolPlanned,
    TurnRecord,
)
from trunkline.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent
LOOK = 0.05
LONGEST_FLIGHT = 0.03
"""Seconds at most until a process ends itself that has begun to send what it held: some is stored by then, some of
that acknowledged."""


def leave(name: str, line: str) -> None:
    """Append a line to a file, whole or not at all."""
    handle = os.open(HERE / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def arrives(mark: str, boundary: str) -> bool:
    """Report whether this call is to be stopped here, which happens once."""
    if mark.partition("@")[2] != boundary:
        return False
    try:
        handle = os.open(HERE / "held" / mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    os.write(handle, str(os.getpid()).encode())
    os.close(handle)
    return True


def may_go(mark: str) -> bool:
    """Report whether the wave continues."""
    return (HERE / "go" / mark.partition(".")[0]).exists()


async def hold(marks: Iterable[str], boundary: str) -> bool:
    """Hold those of the calls that are to be held here; whether there was one."""
    held = [mark for mark in marks if arrives(mark, boundary)]
    while held and not may_go(held[0]):  # noqa: ASYNC110 - another process says when
        await anyio.sleep(LOOK)
    return bool(held)


class Boundaries:
    """Knows which call a message on the bus is about."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._flying = False

    async def __call__(self, message: Any, proceed: Any) -> None:
        """Hold the message before, while and after it is sent."""
        where, marks = self._about(message.envelope.data)
        if message.direction == "in":
            where = "received" if where == "sent" else ""
        if not where:
            await proceed(message)
            return
        await hold(marks, f"{where} before")
        if await hold(marks, f"{where} flying"):
            return await self._fly(message, proceed)
        await proceed(message)
        await hold(marks, f"{where} after")

    async def _fly(self, message: Any, proceed: Any) -> None:
        if not self._flying:
            self._flying = True
            left = random.uniform(0, LONGEST_FLIGHT)
            asyncio.get_running_loop().call_later(left, os.kill, os.getpid(), signal.SIGKILL)
        await proceed(message)
        await anyio.sleep_forever()

    def _about(self, data: object) -> tuple[str, list[str]]:
        match data:
            case CallTool() if isinstance(data.arguments, dict) and "mark" in data.arguments:
                self._marks[data.call] = str(data.arguments["mark"])
                return "sent", [self._marks[data.call]]
            case EffectStarted():
                return "started", self._of(data.call)
            case EffectFinished():
                return "finished", self._of(data.call)
            case ToolOutcome():
                return "told", self._of(data.call)
            case TurnRecord():
                return self._record(data)
        return "", []

    def _of(self, call: str) -> list[str]:
        return [self._marks[call]] if call in self._marks else []

    def _record(self, record: TurnRecord) -> tuple[str, list[str]]:
        """Return the first entry of the record that is of a relevant kind."""
        for entry in record.entries:
            if isinstance(entry, ToolPlanned):
                self._calls[f"{record.turn} {entry.call.id}"] = str(entry.call.arguments.get("mark", ""))
        for kind, where in WHERE.items():
            ids = [_call_id(entry) for entry in record.entries if isinstance(entry, kind)]
            if ids:
                return where, [self._calls.get(f"{record.turn} {id}", "") for id in ids]
        return "", []


WHERE: dict[type, str] = {
    ToolFinished: "kept",
    ApprovalRecorded: "decided",
    ApprovalAsked: "asked",
    ToolPlanned: "planned",
}


def _call_id(entry: Any) -> str:
    return str(entry.call.id if isinstance(entry, ToolPlanned) else entry.call_id)


@trunkline.tool(effect="write")
async def transfer(mark: str) -> str:
    """Move money: an effect outside."""
    await hold([mark], "effect before")
    leave("effects", mark)
    await hold([mark], "effect after")
    return f"moved {mark}"


@trunkline.tool(effect="write", timeout=1.0)
def overdue(mark: str) -> str:
    """Move money, long after the time is over: a thread that nothing stops."""
    held = arrives(mark, "effect before")
    while held and not may_go(mark):
        with suppress(BaseException):
            time.sleep(LOOK)
    leave("effects", mark)
    return f"moved {mark}"


@trunkline.tool(effect="write")
async def stubborn(mark: str) -> str:
    """Move money, and ignore being cancelled."""
    with anyio.CancelScope(shield=True):
        await hold([mark], "effect before")
        leave("effects", mark)
    return f"moved {mark}"


@trunkline.tool(effect="read")
async def careless(mark: str) -> str:
    """Move money, and report otherwise: the checker must find it."""
    leave("effects", mark)
    await hold([mark], "effect after")
    return f"moved {mark}"


@trunkline.hookimpl
def trunkline_tools() -> list[Any]:
    """The tools."""
    return [transfer, overdue, stubborn, careless]


@trunkline.hookimpl
def trunkline_bus_middleware() -> list[Any]:
    """The holds."""
    return [Boundaries()]


@trunkline.hookimpl
def trunkline_models() -> list[Any]:
    """A model that follows the message, in the monitor's own process."""
    return [ScriptedModel()]
