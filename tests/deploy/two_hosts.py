"""A hub here, and a remote in a separate network namespace: enrolled, used, disconnected, and reconnected.

``run`` is one scenario: calls are running on the remote when the line breaks, they end during the outage, and their
results arrive when it is restored. Both sides may be killed and restarted during the outage.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import anyio
import msgspec
import pytest

from trunkline.config import load_config
from trunkline.config.editor import write_settings
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.home.paths import Home
from trunkline.home.run_file import read_run_file
from trunkline.runtime.connection_settings import bus_settings
from trunkline.testing.platform import DEFAULTS, PlatformClient, clean_environ
from trunkline_bus import BusSettings, connect

WORK = '''
"""Tools with an effect that can be counted: a line when it begins and one when it ended."""
import os
from pathlib import Path

import anyio
import trunkline

LEDGER = Path(os.environ["TRUNKLINE_HOME"]) / "effects"


def note(line):
    with LEDGER.open("a") as file:
        file.write(line + "\\n")


@trunkline.tool(effect="write")
async def work(key: str, seconds: float) -> str:
    """Work for some seconds.

    Args:
        key: What it is called.
        seconds: How long.
    """
    note(f"begun {key}")
    await anyio.sleep(seconds)
    note(f"ended {key}")
    return f"done {key}"


@trunkline.hookimpl
def trunkline_tools():
    return [work]
'''


def why_not() -> str | None:
    """Why no network namespaces can be made here; None when they can."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "needs Linux and the program ip (Debian: iproute2)"
    if os.geteuid() != 0:
        return "needs root, to make a network namespace"
    name = f"tl-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None if tried.returncode == 0 else f"no network namespace can be made: {tried.stderr.strip()}"


needs_namespaces = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


class Line:
    """A cable from this namespace to another. ``near`` and ``far`` are the addresses of its ends."""

    def __init__(self) -> None:
        number = os.getpid() % 16_000
        self.space = f"tl-{os.getpid()}"
        self._plug = f"tl{os.getpid()}"
        net = f"198.18.{number // 64}.{number % 64 * 4}"
        head, _, last = net.rpartition(".")
        self.near, self.far = f"{head}.{int(last) + 1}", f"{head}.{int(last) + 2}"

    def lay(self) -> None:
        """Make namespace and cable."""
        far = f"{self._plug}f"
        _ip("netns", "add", self.space)
        _ip("link", "add", self._plug, "type", "veth", "peer", "name", far)
        _ip("link", "set", far, "netns", self.space)
        _ip("addr", "add", f"{self.near}/30", "dev", self._plug)
        _ip("-n", self.space, "addr", "add", f"{self.far}/30", "dev", far)
        _ip("-n", self.space, "link", "set", far, "up")
        _ip("-n", self.space, "link", "set", "lo", "up")
        self.mend()

    def cut(self) -> None:
        """Drop all traffic from now on, without notifying either side."""
        _ip("link", "set", self._plug, "down")

    def mend(self) -> None:
        """It is as before."""
        _ip("link", "set", self._plug, "up")

    def remove(self) -> None:
        """Leave nothing behind."""
        subprocess.run(["ip", "link", "del", self._plug], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def line() -> Iterator[Line]:
    """A cable, for a while."""
    made = Line()
    try:
        made.lay()
        yield made
    finally:
        made.remove()


class Program:
    """One ``trunkline`` command as a process, perhaps in a namespace."""

    def __init__(self, home: Path, arguments: str, space: str | None = None) -> None:
        self.home, self.space, self.arguments = home, space, arguments
        self.log = home.parent / f"{home.name}-{arguments.split()[0]}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._from = 0

    def launch(self) -> None:
        """Start it."""
        inside = ["ip", "netns", "exec", self.space] if self.space else []
        argv = [*inside, sys.executable, "-m", "trunkline.cli.main", *self.arguments.split()]
        self._from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, env=environ(self.home), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def says(self, pattern: str, seconds: float = 60.0) -> str:
        """Wait until it has said something, since it was started last, and return the part in parentheses."""
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, self.text())) is None:
            assert self.process is not None
            alive = self.process.poll() is None
            assert alive and time.monotonic() < deadline, (
                f"{self.arguments}: no {pattern!r} in:\n{self.text()}"
            )
            await anyio.sleep(0.02)
        return found.group(found.lastindex or 0)

    def text(self) -> str:
        """Return its output since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill it, and wait until it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=60)


def environ(home: Path) -> dict[str, str]:
    """A clean environment for a process on this home."""
    return {**clean_environ(), "PYTHONUNBUFFERED": "1", "TRUNKLINE_HOME": str(home)}


async def command(home: Path, arguments: str, space: str | None = None) -> tuple[int, str]:
    """Run a command to its end: its exit status and all that it said."""
    program = Program(home, arguments, space)
    inside = ["ip", "netns", "exec", program.space] if program.space else []
    argv = [*inside, sys.executable, "-m", "trunkline.cli.main", *arguments.split()]
    with anyio.fail_after(60):
        done = await anyio.run_process(argv, env=environ(home), check=False, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode()


@dataclass
class Hosts:
    """The hub and the remote, running. ``bus`` says how to reach the hub's."""

    line: Line
    hub: Program
    remote: Program

    @property
    def bus(self) -> BusSettings:
        """Return a connection to the running hub."""
        config = load_config(self.hub.home, environ=environ(self.hub.home))
        run = read_run_file(Home.of(config))
        assert run is not None
        found = bus_settings(config, url=run.url, user=run.user, password=run.password)
        return msgspec.structs.replace(found, name="test")

    @asynccontextmanager
    async def talker(self) -> AsyncIterator[PlatformClient]:
        """Return a client that sends messages to the hub."""
        async with connect(self.bus) as bus:
            yield PlatformClient(bus, timeout=120.0)

    async def start_hub(self) -> None:
        """Start the hub, and wait until it is ready."""
        self.hub.launch()
        await self.hub.says("Trunkline is ready")

    async def start_remote(self) -> None:
        """Start the remote, and wait until it serves its own."""
        self.remote.launch()
        await self.remote.says("The tools of this host are served")

    async def connected(self, *, seconds: float = 60.0) -> None:
        """Wait until the hub's agents are offered the remote's tool and it answers."""
        async with self.talker() as talker:
            deadline = time.monotonic() + seconds
            while (
                "done hello"
                not in (answer := await talker.say("/tool laptop__work key=hello seconds=0")).text
            ):
                assert time.monotonic() < deadline, answer.text
                await anyio.sleep(0.2)

    def effects(self) -> list[str]:
        """Return the effects on the remote."""
        file = self.remote.home / "effects"
        return file.read_text().splitlines() if file.exists() else []

    async def happened(self, line: str, seconds: float = 60.0) -> None:
        """Wait until a line stands among the effects."""
        deadline = time.monotonic() + seconds
        while line not in self.effects():
            assert time.monotonic() < deadline, f"no {line!r} in {self.effects()}"
            await anyio.sleep(0.02)


async def enrolled(hub: Path, remote: Path, line: Line, *, name: str = "laptop") -> None:
    """Let the remote's home in at the hub's: two commands, and a code from one to the other."""
    inviting = Program(hub, f"remote invite {name} --listen {line.near}:7422")
    inviting.launch()
    try:
        code = await inviting.says(r"remote join \S+ (\S+)\n")
        status, said = await command(remote, f"remote join {line.near} {code}", line.space)
        assert status == 0, said
        await inviting.says(f"{name} has joined")
        assert inviting.process is not None
        assert inviting.process.wait(timeout=60) == 0
    finally:
        inviting.end()


@asynccontextmanager
async def hosts(folder: Path) -> AsyncIterator[Hosts]:
    """A hub and an enrolled remote, both running, with a cable between them."""
    hub, remote = folder / "hub", folder / "remote"
    tools = folder / "tools"
    for one in (hub, remote, tools):
        one.mkdir()
    (tools / "work.py").write_text(dedent(WORK))
    write_settings(hub / "trunkline.toml", DEFAULTS)
    write_settings(remote / "trunkline.toml", {"runtime.tool_sources": [str(tools)]})
    with line() as cable:
        await enrolled(hub, remote, cable)
        both = Hosts(
            cable, Program(hub, "up --log json"), Program(remote, "remote serve --log json", cable.space)
        )
        try:
            await both.start_hub()
            await both.start_remote()
            await both.connected()
            yield both
        except BaseException:
            print(both.hub.text()[-6_000:], both.remote.text()[-6_000:])  # noqa: T201 - shown with the failure
            raise
        finally:
            both.hub.end()
            both.remote.end()


@dataclass(frozen=True)
class Order:
    """The plan of a run: the length of the outage, the number of running calls, and the processes to kill."""

    offline: float
    calls: int = 4
    kill_hub: bool = True
    kill_remote: bool = True


@dataclass
class Outcome:
    """The outcome of the disconnection. ``waited`` is the time from the restored line to each answer, in seconds."""

    order: Order
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    reported: str = ""
    reported_after: float = 0.0
    local_answers: int = 0
    waited: list[float] = field(default_factory=list)
    afterwards: str = ""

    @property
    def broken(self) -> bool:
        """Report whether a guarantee was violated."""
        kind = "is unreachable" in self.reported and self.afterwards == "done after"
        return self.answered != self.order.calls or bool(self.wrong or self.doubled) or not kind


async def run(order: Order, folder: Path, show: Callable[[str], None]) -> Outcome:
    """The story, from the enrolment to the end."""
    outcome = Outcome(order)
    async with hosts(folder) as both:
        show(f"{order.calls} calls are sent to the remote")
        sent = await _under_way(both, order.calls)
        both.line.cut()
        down = time.monotonic()
        show("the line is down")
        for number in range(order.calls):
            await both.happened(f"ended {number}")
        await _meanwhile(both, order, outcome)
        await _waited(down + order.offline, both, outcome, show)
        both.line.mend()
        up = time.monotonic()
        show("the line is up")
        async with both.talker() as talker, anyio.create_task_group() as tasks:
            for number, accepted in enumerate(sent):
                tasks.start_soon(_collected, talker, number, accepted, up, outcome)
        await both.connected()
        async with both.talker() as talker:
            outcome.afterwards = _last(await talker.say("/tool laptop__work key=after seconds=0")).strip()
        outcome.doubled = [
            line for number in range(order.calls) for line in (f"begun {number}", f"ended {number}")
            if both.effects().count(line) != 1
        ]  # fmt: skip
    return outcome


async def _under_way(both: Hosts, calls: int) -> list[MessageAccepted]:
    sent = []
    async with both.talker() as talker:
        for number in range(calls):
            sent.append(await talker.send(f"/tool laptop__work key={number} seconds=3"))
        for number in range(calls):
            await both.happened(f"begun {number}")
    return sent


async def _meanwhile(both: Hosts, order: Order, outcome: Outcome) -> None:
    """Kill the chosen processes; calls that cannot run are reported, and work that needs no remote continues."""
    if order.kill_remote:
        both.remote.end()
        await both.start_remote()
    if order.kill_hub:
        both.hub.end()
        await both.start_hub()
    async with both.talker() as talker:
        began = time.monotonic()
        outcome.reported = (await talker.say("/tool laptop__work key=never seconds=0")).text
        outcome.reported_after = time.monotonic() - began


async def _waited(until: float, both: Hosts, outcome: Outcome, show: Callable[[str], None]) -> None:
    """Wait for the end of the outage while people send messages."""
    while (left := until - time.monotonic()) > 0:
        async with both.talker() as talker:
            assert (await talker.say("hello")).ended.code is None
        outcome.local_answers += 1
        show(f"{left:.0f} seconds to go")
        await anyio.sleep(min(left, 30.0))


async def _collected(
    talker: PlatformClient, number: int, accepted: MessageAccepted, up: float, outcome: Outcome
) -> None:
    answer = await talker.answer(accepted)
    outcome.waited.append(time.monotonic() - up)
    if f"done {number}" in answer.text and answer.ended.code is None:
        outcome.answered += 1
    else:
        outcome.wrong.append(f"{number}: {answer.text!r}")


def _last(answer: object) -> str:
    text = getattr(answer, "text", "")
    found = re.findall(r"done \w+", text)
    return found[-1] if found else text
