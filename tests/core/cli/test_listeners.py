"""The listeners that ``doctor`` reports are those of a home's processes, with every listening feature enabled."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.ports import free_port
from trunkline.testing.platform import clean_environ

TRUNKLINE = (sys.executable, "-m", "trunkline.cli.main")


@contextmanager
def command(home: Path, *words: str) -> Iterator[psutil.Process]:
    """Run a command of this home until the block ends."""
    log = (home / f"{words[0]}.out").open("wb")
    process = subprocess.Popen(
        [*TRUNKLINE, *words], env=environ(home), stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def environ(home: Path) -> dict[str, str]:
    return {**clean_environ(), "TRUNKLINE_HOME": str(home)}


def listening_addresses(*roots: psutil.Process) -> set[tuple[str, int]]:
    """Every address at which a process of these trees takes connections or datagrams."""
    found = set()
    for one in {process for root in roots for process in (root, *root.children(recursive=True))}:
        for connection in one.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN or (connection.type == 2 and not connection.raddr):
                found.add((connection.laddr.ip, connection.laddr.port))
    return found


def reported(home: Path) -> set[tuple[str, int]]:
    """Return the listeners that ``doctor`` reports, each with its purpose and its credential."""
    done = subprocess.run(
        [*TRUNKLINE, "doctor", "--json"],
        env=environ(home),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    listeners = json.loads(done.stdout)["listeners"]
    assert all(one["purpose"] and one["credential"] for one in listeners)
    places = [urlsplit(one["address"]) for one in listeners]
    return {(place.hostname or "", place.port or 0) for place in places}


def until(true: Callable[[], object], home: Path) -> None:
    deadline = time.monotonic() + 150
    while not true():
        logs = {file.name: file.read_text() for file in home.glob("*.out")}
        assert time.monotonic() < deadline, logs
        time.sleep(0.2)


@pytest.mark.parametrize("everything", [False, True], ids=["as shipped", "everything on"])
def test_doctor_lists_every_listening_port(tmp_path: Path, everything: bool) -> None:
    """No port is open that doctor does not name, and it names none that is not: the trees of processes are asked."""
    remote = free_port()
    settings = '[gateway]\nport = 0\n[runtime]\nprovider_adapter = "offline"\n'
    if everything:
        settings += f'[monitor]\nengine = true\nengine_port = 0\n[remotes]\nlisten = "127.0.0.1:{remote}"\n'
    (tmp_path / "trunkline.toml").write_text(settings)
    with ExitStack() as stack:
        roots = [stack.enter_context(command(tmp_path, "up"))]
        until(lambda: len(listening_addresses(*roots)) >= (4 if everything else 2), tmp_path)
        if everything:
            roots += [
                stack.enter_context(command(tmp_path, *words))
                for words in (("mcp", "serve", "main", "--http"), ("remote", "invite", "laptop"))
            ]
            until(lambda: all(listening_addresses(root) for root in roots), tmp_path)
        assert reported(tmp_path) == listening_addresses(*roots)
        assert len(listening_addresses(*roots)) == (6 if everything else 2)
    assert reported(tmp_path) == set()
    assert list((tmp_path / "run" / "listeners").iterdir()) == []
