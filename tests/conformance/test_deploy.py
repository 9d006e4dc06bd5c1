"""DEPLOY-1 to DEPLOY-5, FS-3 and PA-T19: a fresh install on a machine of one's own, with no network and no traffic."""

import ast
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from trunkline.testing.platform import UNASKED, clean_environ
from trunkline.testing.scripted_provider import provider_process

from . import contract
from .conftest import client_of
from .offline_day import LAN
from .processes import Up

IDLE = 3.0
"""Seconds of idling; the contract's sixty, made short."""

SILENT = ("Ip.OutNoRoutes", "Ip6OutNoRoutes", "Udp.OutDatagrams", "Udp6OutDatagrams", "IpExt.OutMcastPkts",
          "IpExt.OutBcastPkts")  # fmt: skip
"""What must not move: packets without a route, anything by UDP (DNS, discovery), multicast and broadcast."""


def in_namespace(script: str, environ: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell script where there is nothing but ``lo`` with a second address. Skips where that cannot be."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("an empty network namespace needs Linux and root")
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("an empty network namespace needs the programs unshare and ip")
    prepare = f"ip link set lo up && ip addr add {LAN}/32 dev lo && echo prepared >&2 &&"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", f"{prepare} {script}", "sh", *arguments],
        env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    if "prepared" not in done.stderr:
        pytest.skip(f"no network namespace can be made here: {done.stderr.strip()}")
    return done


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the report of ``offline_day.py``."""
    folder = tmp_path_factory.mktemp("day")
    environ = {
        **clean_environ(),
        **UNASKED,
        "HOME": str(folder),
        "TRUNKLINE_HOME": str(folder / "home"),
        "TRUNKLINE_GATEWAY__PORT": "0",
        "TRUNKLINE_MONITOR__ENGINE_PORT": "0",
        "PYTHON": sys.executable,
    }
    program = Path(__file__).with_name("offline_day.py")
    done = in_namespace('exec "$PYTHON" "$1" "$2"', environ, str(program), str(IDLE))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def moved(day: dict[str, Any], begin: str, end: str) -> dict[str, int]:
    return {name: day[end][name] - day[begin][name] for name in SILENT if day[end][name] != day[begin][name]}


def events(text: str) -> list[contract.Event]:
    return list(contract.events_in(text.encode(), contract.GATEWAY_EVENTS))


@pytest.mark.namespace
def test_the_kernel_counts_outgoing_packets(tmp_path: Path) -> None:
    """The instrument works: a connection, a DNS question and a multicast that have no route are counted."""
    program = tmp_path / "leave.py"
    program.write_text(
        textwrap.dedent("""
        import socket, sys, json
        from offline_day import counters
        before = counters()
        for family, address in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1"),
                                (socket.AF_INET, "224.0.0.251")):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                try:
                    with socket.socket(family, kind) as one:
                        one.connect((address, 53))
                except OSError:
                    pass
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"x", ("127.0.0.1", 53))
        after = counters()
        print(json.dumps({name: after[name] - before[name] for name in after}))
        """)
    )
    here = str(Path(__file__).parent)
    environ = {
        **clean_environ(),
        "PYTHONPATH": here,
        "TRUNKLINE_HOME": str(tmp_path),
        "PYTHON": sys.executable,
    }
    done = in_namespace('exec "$PYTHON" "$1"', environ, str(program))
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert (
        counted["Ip.OutNoRoutes"] >= 3 and counted["Ip6OutNoRoutes"] >= 2 and counted["Udp.OutDatagrams"] >= 1
    )


@pytest.mark.namespace
def test_DEPLOY_1_FS_3_everything_works_without_a_network(day: dict[str, Any]) -> None:
    """Start, a conversation with tools, memory, the door, a restart, resuming, and export, with the offline adapter."""
    assert day["ready"]["status"] == "ready", day["ready"]
    names = [event.name for event in events(day["tool"]) if event.name != "text-delta"]
    assert names == ["tool-call", "tool-result", "done"]
    text = "".join(event.data.content for event in events(day["found"]) if event.name == "text-delta")
    assert "Tomatoes want sun." in text
    assert day["stopped"] == 0
    assert day["listed"]["total"] == 1
    assert "Tomatoes want sun." in day["resumed"] and day["messages"] >= 8
    assert "memory-export" in day["exported"]
    assert day["denied"] == 401


@pytest.mark.namespace
@pytest.mark.parametrize(
    ("begin", "end"), [("before", "started"), ("started", "talked"), ("talked", "idle"), ("before", "end")]
)
def test_DEPLOY_4_PA_T19_no_outgoing_connection(day: dict[str, Any], begin: str, end: str) -> None:
    """At start-up, in a local conversation, while idle, and in all: no packet, no DNS question, no multicast, of any of
    the processes, NATS included."""
    assert moved(day, begin, end) == {}


@pytest.mark.namespace
def test_DEPLOY_3_DEPLOY_5_only_loopback_listens(day: dict[str, Any]) -> None:
    """A fresh install is not reachable by another address of the machine: every socket of every process is bound to
    127.0.0.1. Only ``gateway.host`` opens the gateway, and the gateway alone, and the door stays locked."""
    assert day["listening"], "something listens"
    assert [one for one in day["listening"] if not one.startswith("tcp:127.0.0.1:")] == []
    assert day["lan"] == 0
    wide = [one for one in day["listening_open"] if not one.startswith("tcp:127.0.0.1:")]
    assert len(wide) == 1 and wide[0].startswith("tcp:0.0.0.0:")
    assert (day["lan_open"], day["lan_open_denied"]) == (200, 401)


AUDIT = """
import os, sys

sys.modules["uvloop"] = None  # its sockets cannot be audited
_log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

def _hook(event, arguments):
    said = None
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        said = repr(arguments[-1])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        said = repr(arguments[0])
    elif event == "open" and isinstance(arguments[0], (str, bytes)) and (arguments[2] or 0) & _writes:
        said = os.fsdecode(arguments[0])
    elif event in ("os.mkdir", "os.rename") and isinstance(arguments[0], (str, bytes)):
        said = os.fsdecode(arguments[0])
    if said is not None:
        os.write(_log, f"{event}\\t{said}\\n".encode())

sys.addaudithook(_hook)
"""


@pytest.fixture
def audited(environ: dict[str, str], tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which every Python process writes down its connections and the files it writes."""
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(AUDIT)
    log = tmp_path / "audit.log"
    python = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "AUDIT_LOG": str(log)}
    return {**environ, **python}, log


def happened(log: Path, *events: str) -> Iterator[str]:
    for line in log.read_text().splitlines():
        event, _, said = line.partition("\t")
        if event in events:
            yield said


@pytest.fixture
def vendor() -> Iterator[str]:
    """A provider in a process of its own."""
    with provider_process() as url:
        yield url


@pytest.mark.anyio
async def test_DEPLOY_2_DEPLOY_4_only_the_configured_provider_is_asked(
    up: Callable[..., Up], audited: tuple[dict[str, str], Path], vendor: str, tmp_path: Path
) -> None:
    """Without a namespace: in a conversation with a configured provider, every connection of every process goes to
    the bus or to that provider, no other name is resolved, and every written file is below the home."""
    environ, log = audited
    running = up(
        **environ,
        TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="openai",
        TRUNKLINE_ADAPTERS__OPENAI__BASE_URL=vendor,
        TRUNKLINE_ADAPTERS__OPENAI__MODEL="scripted",
    )
    async with client_of(running.url, running.token) as client:
        reply = await client.say(
            'call:memory_write {"path": "a.md", "content": "b"} ;; call:memory_export {} ;; say:done'
        )
        assert reply.text == "done"
    bus = json.loads((running.home / "run/bus.json").read_text())["url"]
    allowed = {int(address.split("/v1")[0].rsplit(":", 1)[1].strip("/")) for address in (vendor, bus)}
    remote = {
        connection.raddr
        for process in running.processes()
        for connection in process.net_connections(kind="inet")
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED
    }
    assert {address.ip for address in remote} <= {"127.0.0.1"}
    for process in running.processes():
        for file in process.open_files():
            if file.mode != "r":
                assert Path(file.path).is_relative_to(tmp_path), file
    await anyio.sleep(1)
    running.stop()
    connected = [ast.literal_eval(said) for said in happened(log, "socket.connect", "socket.sendto")]
    addresses = {(one[0], one[1]) for one in connected if isinstance(one, tuple)}
    assert addresses and addresses == {("127.0.0.1", port) for port in allowed}, addresses
    assert {ast.literal_eval(said)[0] for said in happened(log, "socket.bind") if said.startswith("(")} == {
        "127.0.0.1"
    }
    names = set(happened(log, "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"))
    assert names <= {"'127.0.0.1'", "b'127.0.0.1'", "'localhost'"}, names
    written = {Path(said) for said in happened(log, "open", "os.mkdir", "os.rename") if said.startswith("/")}
    assert any(file.is_relative_to(running.home) for file in written), "the audit sees what is written"
    elsewhere = [file for file in written if not any(map(file.is_relative_to, (tmp_path, "/dev", "/proc")))]
    assert not elsewhere, elsewhere
