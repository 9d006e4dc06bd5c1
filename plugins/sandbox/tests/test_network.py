"""The networks of a program in bubblewrap: none, a separate one that reaches other hosts, or this machine's."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.errors import ToolError
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
needs_slirp = pytest.mark.skipif(
    shutil.which("slirp4netns") is None or not Path("/dev/net/tun").exists(),
    reason="slirp4netns is not installed, or this machine has no /dev/net/tun",
)

TRY = """
import socket, sys
for at in sys.argv[1:]:
    host, _, port = at.rpartition(":")
    kind = socket.AF_UNIX if not host else socket.AF_INET
    try:
        with socket.socket(kind) as one:
            one.settimeout(3)
            one.connect((host, int(port)) if host else chr(0) + port)
        print(at)
    except OSError:
        pass
"""
"""Prints which of the addresses can be reached; one without a host is an abstract Unix socket."""

NONE, OUT, HOST = SandboxLimits(), SandboxLimits(network=True), SandboxLimits(network=True, host_network=True)


def elsewhere() -> str:
    """An address of this machine that is not loopback: as good as another host."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        if not (found := str(probe.getsockname()[0])).startswith("127."):
            return found
    pytest.skip("this machine has no address but loopback")


@pytest.fixture
def addresses() -> Iterator[dict[str, str]]:
    """Listeners: on loopback alone, as the bus and the gateway do; by an abstract name; and for all the world."""
    with (
        socket.create_server(("127.0.0.1", 0)) as near,
        socket.create_server(("0.0.0.0", 0)) as open_to_all,
        socket.socket(socket.AF_UNIX) as named,
    ):
        name = f"trunkline-test-{near.getsockname()[1]}"
        named.bind(f"\0{name}")
        named.listen()
        port = open_to_all.getsockname()[1]
        yield {
            "loopback": f"127.0.0.1:{near.getsockname()[1]}",
            "by slirp4netns": f"10.0.2.2:{near.getsockname()[1]}",
            "by its resolver": f"10.0.2.3:{near.getsockname()[1]}",
            "abstract": f":{name}",
            "out": f"{elsewhere()}:{port}",
        }


async def reached(home: Path, limits: SandboxLimits, addresses: dict[str, str]) -> set[str]:
    """Which of the addresses a program with these limits reaches."""
    ran = await Bubblewrap(SandboxSettings(), home).run(
        ("python3", "-c", TRY, *addresses.values()), workspace=None, env={}, limits=limits
    )
    assert ran.exit_code == 0, ran.stderr
    found = ran.stdout.decode().split()
    return {name for name, at in addresses.items() if at in found}


def uplinks() -> list[psutil.Process]:
    """The stacks that this process has begun."""
    return [child for child in psutil.Process().children() if child.name() == "slirp4netns"]


async def test_cc_t11_without_a_network_nothing_is_reached(tmp_path: Path, addresses: dict[str, str]) -> None:
    """CC-T11: not loopback, no name in the kernel, no other host."""
    assert await reached(tmp_path, NONE, addresses) == set()


@needs_slirp
async def test_a_network_leads_out_and_not_to_this_machine(tmp_path: Path, addresses: dict[str, str]) -> None:
    """Listeners on loopback (the bus, the gateway) and abstract sockets are unreachable; other hosts are reachable.
    The network's processes end with the program."""
    assert await reached(tmp_path, OUT, addresses) == {"out"}
    assert uplinks() == []


@needs_slirp
async def test_many_networks_at_once(tmp_path: Path) -> None:
    """Each program has its own, and sees no neighbour's listener."""
    listen = "import socket; s = socket.create_server(('0.0.0.0', 4000)); print(s.getsockname()[1])"
    said: list[bytes] = []

    async def one() -> None:
        sandbox = Bubblewrap(SandboxSettings(), tmp_path)
        ran = await sandbox.run(("python3", "-c", listen), workspace=None, env={}, limits=OUT)
        said.append(ran.stdout)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(one)
    assert said == [b"4000\n"] * 8 and uplinks() == []


@needs_slirp
async def test_a_network_waits_until_the_sandbox_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bubblewrap tells its process before it has set up the network; an uplink that came first would make it fail."""
    held, folder = tmp_path / "held", tmp_path / "bin"
    os.mkfifo(held)
    folder.mkdir()
    slow = folder / "bwrap"
    slow.write_text(f'#!/bin/sh\nexec 9<{held}\nexec {shutil.which("bwrap")} --file 9 /held "$@"\n')
    slow.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    ran: list[int | None] = []

    async def run() -> None:
        sandbox = Bubblewrap(SandboxSettings(), tmp_path)
        ran.append((await sandbox.run(("true",), workspace=None, env={}, limits=OUT)).exit_code)

    async with anyio.create_task_group() as tasks:
        with held.open("r+b", buffering=0):  # "wb" would wait for a reader, and where none comes, for ever
            tasks.start_soon(run)
            while not first_processes():  # noqa: ASYNC110 - another process, no event to wait for
                await anyio.sleep(0.01)
            await anyio.sleep(0.5)
            assert uplinks() == []
    assert ran == [0]


def first_processes() -> list[psutil.Process]:
    """The first processes of the sandboxes of this process."""
    return [below for child in psutil.Process().children() for below in child.children()]


AROUND = """
import socket, struct, sys
at, device = ("127.0.0.1", int(sys.argv[1])), socket.if_nametoindex("tap0")
bound, plain, stream = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM), socket.socket()
tries = (
    lambda: bound.sendto(b"bound", at),
    lambda: plain.sendmsg([b"told"], [(socket.IPPROTO_IP, 8, struct.pack("i4s4s", device, bytes(4), bytes(4)))], 0, at),
    lambda: stream.connect(at),
)
for one in (bound, stream):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tap0")
    one.settimeout(1)
for each in tries:
    try:
        each()
    except OSError:
        pass
"""
"""Sends to loopback by way of the device that leads out: by a bound socket, a message's wish (IP_PKTINFO), and TCP."""


@needs_slirp
async def test_no_packet_reaches_loopback(tmp_path: Path) -> None:
    """Binding to a device needs no rights, and leads past a program's own loopback to this machine's."""
    with socket.create_server(("127.0.0.1", 0)) as stream, socket.socket(type=socket.SOCK_DGRAM) as packets:
        packets.bind(stream.getsockname())
        port = str(stream.getsockname()[1])
        ran = await Bubblewrap(SandboxSettings(), tmp_path).run(
            ("python3", "-c", AROUND, port), workspace=None, env={}, limits=OUT
        )
        assert (ran.exit_code, ran.stderr) == (0, b"")
        for one, take in ((stream, stream.accept), (packets, lambda: packets.recv(9))):
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                take()


LOCAL_RESOLVER = """
import ctypes, pathlib, sys
libc = ctypes.CDLL(None)
assert libc.unshare(0x00020000) == 0  # mounts of its own (CLONE_NEWNS), which nobody else sees (MS_REC | MS_PRIVATE)
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
place = pathlib.Path(sys.argv[1], "resolv.conf")
place.write_text("nameserver 127.0.0.1\\n")
assert libc.mount(bytes(place), b"/etc/resolv.conf", None, 0x1000, None) == 0  # MS_BIND
import anyio
import anyio.to_thread
from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

async def main():
    sandbox = Bubblewrap(SandboxSettings(), pathlib.Path(sys.argv[1]))
    limits = SandboxLimits(network=True)
    ran = await sandbox.run(("python3", "-c", *sys.argv[2:]), workspace=None, env={}, limits=limits)
    print(ran.exit_code, ran.stdout.decode())

anyio.run(main)
"""
"""Runs a program with a network on a machine whose resolver is on loopback, as with dnsmasq or unbound."""


@needs_slirp
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another /etc/resolv.conf")
async def test_a_resolver_on_loopback_is_not_reachable(tmp_path: Path, addresses: dict[str, str]) -> None:
    """slirp4netns's own address for it would lead to all that listens beside it."""
    words = (sys.executable, "-c", LOCAL_RESOLVER, str(tmp_path), TRY, *addresses.values())
    done = await anyio.run_process(words, stderr=None)
    code, *reach = done.stdout.decode().split()
    assert (code, reach) == ("0", [addresses["out"]])


async def test_the_host_network_is_used_only_on_request(tmp_path: Path, addresses: dict[str, str]) -> None:
    """With ``host_network`` everything that listens here is within reach."""
    assert {"loopback", "abstract"} <= await reached(tmp_path, HOST, addresses)


async def test_without_slirp4netns_a_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not replaced by this machine's own: nothing is run, and the text says what to install, or to lend."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bwrap").symlink_to(str(shutil.which("bwrap")))
    monkeypatch.setenv("PATH", str(folder))
    sandbox = Bubblewrap(SandboxSettings(), tmp_path)
    with pytest.raises(ToolError, match=r"apt install slirp4netns.*--host-network"):
        await sandbox.run(("touch", "/workspace/ran"), workspace=tmp_path, env={}, limits=OUT)
    assert not (tmp_path / "ran").exists()
    held = psutil.Process().num_fds()
    for _ in range(3):
        with pytest.raises(ToolError):
            await sandbox.run(("true",), workspace=tmp_path, env={}, limits=OUT)
    assert psutil.Process().num_fds() == held
    assert (await sandbox.run(("true",), workspace=None, env={})).exit_code == 0


BEGINS = """
import anyio, pathlib, sys
from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

async def main():
    sandbox = Bubblewrap(SandboxSettings(), pathlib.Path(sys.argv[1]))
    limits = SandboxLimits(network=True)
    async with await sandbox.start(("sleep", "600"), workspace=None, env={}, limits=limits) as process:
        print("begun", flush=True)
        await process.wait()

anyio.run(main)
"""


@needs_slirp
@pytest.mark.kill
async def test_a_killed_worker_leaves_no_network(tmp_path: Path) -> None:
    """The network's processes end with the worker, as the program does."""
    async with await anyio.open_process([sys.executable, "-c", BEGINS, str(tmp_path)], stderr=None) as worker:
        assert worker.stdout is not None and b"begun" in await worker.stdout.receive()
        children = psutil.Process(worker.pid).children(recursive=True)
        assert any(name_of(child) == "slirp4netns" for child in children)
        worker.kill()
    with anyio.fail_after(60):
        while any(map(name_of, children)):  # noqa: ASYNC110 - other processes, no event to wait for
            await anyio.sleep(0.05)


def name_of(process: psutil.Process) -> str:
    """Return the name of the program; "" for an ended process, also for a zombie."""
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.name()
    except psutil.NoSuchProcess:
        return ""
