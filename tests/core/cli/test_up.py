"""``trunkline up`` as a process: ready, alone on its home, gone without a trace."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Up = Callable[..., "Started"]

PHASES = [
    "runtime config",
    "bus",
    "adapter config",
    "tools",
    "memory and its history",
    "preferences",
    "ready",
]


class Started:
    """A ``trunkline up`` that said it is ready."""

    def __init__(self, environ: dict[str, str], folder: Path, arguments: tuple[str, ...]) -> None:
        self._out, self._err = folder / "up.out", folder / "up.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trunkline.cli.main", "up", "--log", "json", *arguments],
                env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip
        self.wait_for(lambda: "ready at" in self.said)

    @property
    def said(self) -> str:
        return self._out.read_text()

    @property
    def logged(self) -> str:
        return self._err.read_text()

    @property
    def address(self) -> str:
        found = re.search(r"ready at (\S+)", self.said)
        assert found is not None
        return found.group(1)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.logged
            assert time.monotonic() < deadline, self.logged
            time.sleep(0.02)

    def children(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return found


@pytest.fixture
def up(environ: dict[str, str], tmp_path: Path) -> Iterator[Up]:
    """Starts the platform; what still runs at the end is killed."""
    running: list[Started] = []

    def start(*arguments: str) -> Started:
        running.append(Started(environ, tmp_path, arguments or ("--port", "0")))
        return running[-1]

    environ["TRUNKLINE_MONITOR__ENGINE_PORT"] = "0"
    yield start
    for one in running:
        one.process.kill()
        one.process.wait()


def test_up_prints_the_address_and_never_the_token(up: Up, home: Path) -> None:
    """PA-T20: the address and the token's file are printed, the token is in no output; it answers at the address."""
    started = up()
    assert urllib.request.urlopen(f"{started.address}/healthz", timeout=60).status == 200
    token = (home / "token").read_text().strip()
    assert str(home / "token") in started.said
    assert "trunkline open" in started.said
    assert token and token not in started.said + started.logged
    assert (home / "token").stat().st_mode & 0o777 == 0o600


def test_up_opens_to_a_network_for_a_proxy_only(up: Up, trunkline: Run, environ: dict[str, str]) -> None:
    """PA-F27: without TLS an address of the network is refused. For a proxy that was named, the log warns."""
    refused = trunkline("up", "--port", "0", "--host", "0.0.0.0")
    assert refused.returncode == 1 and "without TLS" in refused.stderr and "Traceback" not in refused.stderr
    assert "trunkline certificate" in refused.stderr and "gateway.behind_proxy" in refused.stderr
    environ["TRUNKLINE_GATEWAY__BEHIND_PROXY"] = "true"
    started = up("--port", "0", "--host", "0.0.0.0")
    warnings = [line for line in started.logged.splitlines() if '"level":"warning"' in line]
    assert len(warnings) == 1 and "without TLS" in warnings[0] and "reverse-proxy.md" in warnings[0]


def test_workers_start_in_the_order_of_the_contract(up: Up) -> None:
    """PA-F44: the phases are logged one after the other, as JSON lines."""
    lines = [json.loads(line) for line in up().logged.splitlines()]
    said = [
        line["message"].removeprefix("start-up: ")
        for line in lines
        if line["message"].startswith("start-up: ")
    ]
    assert said == PHASES


def test_a_second_instance_reports_the_pid_of_the_first(up: Up, trunkline: Run) -> None:
    """One instance a home."""
    started = up()
    second = trunkline("up", "--port", "0")
    assert second.returncode == 1
    assert "already runs on" in second.stderr and f"(pid {started.process.pid})" in second.stderr


def test_sigterm_drains_and_leaves_nothing(up: Up, home: Path) -> None:
    """Exit status 0, no process and no run file left."""
    started = up()
    children = started.children()
    assert children, "the embedded server is a child"
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(timeout=60) == 0, started.logged
    assert not [child for child in children if child.is_running()]
    assert not (home / "run" / "bus.json").exists()


@pytest.mark.kill
def test_sigkill_leaves_nothing_running_and_the_next_start_works(up: Up) -> None:
    """The server ends with its parent, and its leftover files do not prevent the next start."""
    started = up()
    children = started.children()
    started.process.kill()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert up().address


def test_doctor_sees_a_running_platform(up: Up, trunkline: Run) -> None:
    """Bus, workers, lock and port are those of the instance that runs."""
    started = up()
    done = trunkline("doctor", "--json")
    found = {one["id"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, found
    assert found["workers.alive"]["summary"].startswith("5 workers run")
    assert "NATS answers" in found["bus.reachable"]["summary"]
    assert started.address in found["gateway.port"]["summary"]
    assert str(started.process.pid) in found["memory.lock"]["summary"]


def test_blocks_from_the_command_line(up: Up, trunkline: Run) -> None:
    """Made, listed, shown, archived, restored and deleted, over the instance that runs."""
    up()
    assert trunkline("blocks", "create", "garden", "--description", "Tomatoes").returncode == 0
    assert "garden" in trunkline("blocks", "list").stdout
    assert (
        json.loads(trunkline("blocks", "show", "garden", "--json").stdout)["config"]["description"]
        == "Tomatoes"
    )
    done = trunkline(
        "blocks", "set", "garden", "goals=a, b", "goals=c", "permissions.max_timeout=9", "--json"
    )
    config = json.loads(done.stdout)["config"]
    assert config["goals"] == ["a, b", "c"] and config["permissions"] == {"max_timeout": 9.0}
    assert trunkline("blocks", "set", "garden", "goals").returncode == 2
    wrong = trunkline("blocks", "set", "garden", "modell=x")
    assert wrong.returncode == 1 and "Did you mean model?" in wrong.stderr
    assert trunkline("blocks", "unset", "garden", "goals", "permissions").returncode == 0
    assert json.loads(trunkline("blocks", "stop", "garden", "--json").stdout)["cancelled"] == []
    unknown = trunkline("blocks", "show", "gardn")
    assert "There is no block called 'gardn'" in unknown.stderr and "trunkline blocks list" in unknown.stderr
    assert "stopped" in trunkline("blocks", "list").stdout
    assert json.loads(trunkline("blocks", "start", "garden", "--json").stdout)["config"] == {
        "description": "Tomatoes"
    }
    asked = trunkline("blocks", "reset", "garden", "--json")
    assert asked.returncode != 0 and "loses its conversations" in asked.stderr, "nobody said yes"
    assert asked.stdout == "", "only JSON is on standard output"
    for words in (("reset", "garden"), ("delete", "garden"), ("delete", "garden", "--archived")):
        asked = trunkline("blocks", *words, stdin="y\n")
        assert asked.returncode == 1 and "nothing was done" in asked.stderr and "--yes" in asked.stderr
    assert trunkline("blocks", "reset", "garden", "--hard", "--yes").returncode == 0
    assert json.loads(trunkline("blocks", "archive", "garden", "--json").stdout) == {"archived": "garden"}
    assert "garden" not in trunkline("blocks", "list").stdout
    assert "garden" in trunkline("blocks", "list", "--archived").stdout
    assert json.loads(trunkline("blocks", "restore", "garden", "--json").stdout)["name"] == "garden"
    deleted = trunkline("blocks", "delete", "garden", "--yes", "--json")
    assert json.loads(deleted.stdout) == {"deleted": "garden", "archived": False}
    gone = trunkline("blocks", "show", "garden")
    assert gone.returncode == 1 and gone.stderr.startswith("Error: ") and "Traceback" not in gone.stderr


def test_a_taken_port_is_reported_in_one_sentence(trunkline: Run) -> None:
    """The start stops and says which port and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = trunkline("up", "--port", port)
    assert done.returncode == 1 and port in done.stderr and "Hint: " in done.stderr
    assert "Traceback" not in done.stderr


def _in_a_namespace(script: str, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], env={**environ, "PYTHON": sys.executable},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    return done


@pytest.mark.namespace
def test_a_read_only_home_is_reported_in_one_sentence(environ: dict[str, str], home: Path) -> None:
    """Nothing is written in part: the home is unchanged."""
    home.mkdir()
    mount = 'mount --bind -o ro "$TRUNKLINE_HOME" "$TRUNKLINE_HOME"'
    script = f'{mount} && exec "$PYTHON" -m trunkline.cli.main up --port 0'
    done = _in_a_namespace(script, environ)
    assert done.returncode == 1
    assert "read-only" in done.stderr and str(home) in done.stderr and "Hint: " in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.namespace
def test_a_full_disk_is_reported_in_one_sentence(environ: dict[str, str], home: Path) -> None:
    """The start stops and says which disk is full."""
    home.mkdir()
    script = (
        'mount -t tmpfs -o size=64k tmpfs "$TRUNKLINE_HOME" && head -c 60000 /dev/zero > "$TRUNKLINE_HOME/big"; '
        'exec "$PYTHON" -m trunkline.cli.main up --port 0 --log json'
    )
    done = _in_a_namespace(script, environ)
    assert done.returncode == 1, done.stderr
    assert re.search(r"Error: .*(full|No space)", done.stderr), done.stderr
    assert str(home) in done.stderr and "Traceback" not in done.stderr


@pytest.mark.namespace
def test_a_small_disk_is_enough(environ: dict[str, str], home: Path) -> None:
    """PA-F45: nothing sets room aside that a machine with little disk does not have."""
    home.mkdir()
    mount = 'mount -t tmpfs -o size=200m tmpfs "$TRUNKLINE_HOME"'
    done = _in_a_namespace(f'{mount} && exec "$PYTHON" -m trunkline.cli.main blocks list', environ)
    assert done.returncode == 0, done.stderr
    assert "BLOCK" in done.stdout


STUBBORN = '''
import asyncio, time, trunkline

@trunkline.tool(effect="read", timeout=0.2)
def stuck() -> str:
    """Hang where no cancellation reaches."""
    time.sleep(600)
    return "late"

@trunkline.tool(effect="read", timeout=0.2)
async def deaf() -> str:
    """Ignore every cancellation."""
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass

@trunkline.hookimpl
def trunkline_tools():
    return [stuck, deaf]
'''


@pytest.mark.parametrize(("tool", "signals"), [("stuck", 1), ("deaf", 2)])
def test_a_tool_that_does_not_end_does_not_keep_the_process(
    up: Up, trunkline: Run, home: Path, tool: str, signals: int
) -> None:
    """A hanging thread is not waited for; a task that ignores everything is not after a second signal."""
    folder = home.parent / "sources"
    folder.mkdir()
    (folder / "stubborn.py").write_text(STUBBORN)
    home.mkdir()
    (home / "trunkline.toml").write_text(f'[runtime]\ntool_sources = ["{folder}"]\n')
    started = up()
    assert "did not finish" in trunkline("say", f"/tool {tool}").stdout
    started.process.send_signal(signal.SIGTERM)
    started.wait_for(lambda: "a second signal exits at once" in started.logged)
    if signals == 2:
        started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(timeout=60) == (0 if signals == 1 else 128 + signal.SIGTERM), started.logged
    assert not (home / "run" / "bus.json").exists() or signals == 2
