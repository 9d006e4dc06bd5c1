"""The fault of a wave, injected while its calls are stopped at a boundary. Does not judge the results."""

import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL
from trunkline.contracts.turns.journal_messages import ToolPlanned
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import BusError, RemoteFault

from .effect_processes import FaultTarget
from .fault_plan import Wave

ASKERS = 3
"""Who ask for the same call at once, besides the turn."""

OVERDUE = 2.5
"""Seconds for which a tool with a limit of one second is held: the limit, the time to stop, and some more."""


@dataclass(slots=True)
class InjectedFault:
    """An injected fault and the calls that it struck. ``dead`` are the ids of the killed tools workers, ``left`` the
    calls that they were running. ``cut``: the turns were ended."""

    struck: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    answers: dict[str, list[ToolOutcome]] = field(default_factory=dict)
    cut: bool = False


class Striker:
    """Injects the fault of one wave. ``since`` are the last records of ledger and journal before the wave."""

    def __init__(
        self, target: FaultTarget, wave: Wave, accepted: Sequence[MessageAccepted], since: Mapping[str, int]
    ):
        self._target = target
        self._wave = wave
        self._accepted = accepted
        self._since = since
        self._draw: random.Random = wave.draw
        self._workers: Mapping[str, int] = {}
        """The process of each worker before the fault, by the worker's id."""
        self.injected = InjectedFault()

    async def strike(self, held: Mapping[str, int]) -> InjectedFault:
        """Inject the fault, and let the calls continue. Killed processes are not restarted here."""
        self._workers = await self._target.workers()
        if self._wave.flying:
            await self._fly(held)
            return self.injected
        match self._wave.kind.fault:
            case "kill tools":
                await self._kill(held, self._some("tools"))
            case "kill monitor":
                await self._kill(held, self._some("monitor"))
            case "kill both":
                await self._kill(held, [*self._some("tools"), *self._some("monitor")])
            case "kill server":
                self.injected.struck = set(held)
                await self._target.kill_server()
            case "stop tools":
                return await self._stop(held)
            case "lose acks" | "lose acks, kill":
                return await self._lose(held)
            case "race":
                return await self._race(held)
            case "cancel":
                await self._cancel(held)
            case "panic":
                return await self._panic(held)
            case "deadline":
                self.injected.struck = set(held)
                await anyio.sleep(OVERDUE)
            case "decide":
                await self._decide_again(held)
        self._target.go(self._wave.number)
        return self.injected

    def _some(self, kind: WorkerKind) -> list[str]:
        names = self._target.names(kind)
        return self._draw.choice([[name] for name in names] + [names])

    async def _kill(self, held: Mapping[str, int], names: Sequence[str]) -> None:
        """Kill the processes; the calls running in them are struck, and no other calls."""
        pids = self._target.pids(names)
        tools = self._target.pids(set(names) & set(self._target.names("tools")))
        self._target.signal(names, signal.SIGKILL)
        self.injected.struck = {mark for mark, pid in held.items() if pid in pids}
        self._bury(held, tools)

    async def calls(self) -> dict[str, tuple[str, CallTool]]:
        """The calls of the wave by their key: the mark, and how they are asked for."""
        found = {}
        async for stored in self._target.running.bus.history(JOURNAL, after=self._since["journal"]):
            for entry in stored.data.entries:
                if isinstance(entry, ToolPlanned):
                    request = CallTool(
                        call=entry.key, name=entry.call.name, arguments=entry.call.arguments,
                        block=stored.envelope.block or "main", conversation=stored.keys["conversation"],
                        turn=stored.data.turn, actor="owner",
                    )  # fmt: skip
                    found[entry.key] = (str(entry.call.arguments["mark"]), request)
        return found

    def _bury(self, held: Mapping[str, int], tools: set[int]) -> None:
        """Record these tools workers as killed, and their running calls as left."""
        self.injected.dead = {id for id, pid in self._workers.items() if pid in tools}
        self.injected.left = {mark for mark, pid in held.items() if pid in tools}

    async def _fly(self, held: Mapping[str, int]) -> None:
        """They send, and end themselves before or after they have read the answer."""
        self.injected.struck = set(held)
        tools = self._target.pids(self._target.names("tools"))
        self._target.go(self._wave.number)
        await self._target.until_gone(held.values())
        self._bury(held, tools)

    async def _stop(self, held: Mapping[str, int]) -> InjectedFault:
        """Suspend one worker, perhaps until it counts as dead, and resume it."""
        names = self._some("tools")[:1]
        pids = self._target.pids(names)
        self.injected.struck = {mark for mark, pid in held.items() if pid in pids}
        self._target.signal(names, signal.SIGSTOP)
        try:
            self._target.go(self._wave.number)
            await anyio.sleep(self._draw.uniform(1.0, 9.0))
        finally:
            self._target.signal(names, signal.SIGCONT)
        return self.injected

    async def _lose(self, held: Mapping[str, int]) -> InjectedFault:
        """Let the server store messages while no acknowledgement arrives."""
        self.injected.struck = set(held)
        wire = self._target.wire
        wire.losing = True
        try:
            self._target.go(self._wave.number)
            await anyio.sleep(self._draw.uniform(0.5, 2.0))
            if "kill" in self._wave.kind.fault:
                self._target.signal(self._target.names("tools"), signal.SIGKILL)
                self._bury(held, set(held.values()))
        finally:
            wire.losing = False
        return self.injected

    async def _race(self, held: Mapping[str, int]) -> InjectedFault:
        """Others ask for the same calls, of whichever worker has time."""
        self.injected.struck = set(held)
        wanted = [(mark, call) for mark, call in (await self.calls()).values() if mark in held]
        async with anyio.create_task_group() as tasks:
            for mark, call in wanted:
                for _ in range(ASKERS):
                    tasks.start_soon(self._ask, mark, call)
            await anyio.sleep(0.3)
            self._target.go(self._wave.number)
        return self.injected

    async def _ask(self, mark: str, call: CallTool) -> None:
        bus = self._target.running.bus
        with anyio.fail_after(60):
            while True:
                with suppress(BusError):
                    async with bus.call_streaming(CALL_TOOL, call, idle_timeout=3.0) as replies:
                        async for reply in replies:
                            if isinstance(reply, ToolOutcome):
                                self.injected.answers.setdefault(mark, []).append(reply)
                                return
                await anyio.sleep(0.1)

    async def _cancel(self, held: Mapping[str, int]) -> None:
        self.injected.struck, self.injected.cut = set(held), True
        async with anyio.create_task_group() as tasks:
            for one in self._accepted:
                tasks.start_soon(self._target.gateway.cancel, one.turn)
        await anyio.sleep(self._draw.uniform(0.0, 0.6))

    async def _panic(self, held: Mapping[str, int]) -> InjectedFault:
        self.injected.struck, self.injected.cut = set(held), True
        self._target.latch.engage("the proof")
        await anyio.sleep(self._draw.choice((0.0, 1.0)))
        self._target.go(self._wave.number)
        await anyio.sleep(1.0)
        self._target.latch.release()
        return self.injected

    async def _decide_again(self, held: Mapping[str, int]) -> None:
        """A second decision, against the first, while the allowed call is under way."""
        self.injected.struck = set(held)
        settled = (await self._target.gateway.approval_list(settled=True)).approvals
        turns = {one.turn for one in self._accepted}
        for asked in settled:
            if asked.turn in turns and asked.settled is not None and asked.settled.allow:
                with suppress(RemoteFault):  # a conflict, as it should be
                    await self._target.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=False)
