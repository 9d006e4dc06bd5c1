"""Docker beyond the contract: background tasks, an engine that hangs, this machine's network."""

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import psutil
import pytest
from anyio.abc import SocketStream
from containers import becomes, image_name, needs_busybox

from tests.support.commands import run_trunkline
from trunkline.contracts.sandbox.detached_program import DetachedProgram, ExitRecord
from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.errors import ToolError
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool
from trunkline_sandbox.docker import backend as backends
from trunkline_sandbox.docker import engine as engines
from trunkline_sandbox.docker import process as processes
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.docker.engine import DockerEngine, EngineError
from trunkline_sandbox.settings import SandboxSettings

pytestmark = [pytest.mark.anyio, needs_busybox, pytest.mark.usefixtures("image")]

BEAT = "echo begun; while :; do echo x >> beat; sleep 0.1; done"
SETTINGS = """
[plugins.sandbox]
backend = "docker"
image = "{image}"
warm_containers = 0
"""


@asynccontextmanager
async def started_platform(base: Path, seconds: float) -> AsyncIterator[Platform]:
    """A platform whose programs run in Docker by its settings file. Tasks live for ``seconds``."""
    (base / "home").mkdir(exist_ok=True)
    (base / "home" / "trunkline.toml").write_text(SETTINGS.format(image=image_name()))
    config = {
        "permissions.allow_shell": True,
        "permissions.approvals": "none",
        "plugins.shell.task_timeout": seconds,
    }
    async with platform(base / "home", config=config, workers=("memory", "tools", "gateway")) as running:
        running.home.workspace("main").mkdir(parents=True, exist_ok=True)
        yield running


async def begin(running: Platform, script: str) -> DetachedProgram:
    said = await call_tool(running.bus, "start_background_task", {"command": script})
    assert said.status == "ok", said
    return DetachedProgram(running.home.path / "tasks" / "main" / said.output.split()[2])


async def ended(record: DetachedProgram) -> ExitRecord:
    with anyio.fail_after(60):
        while (ending := record.exit_record()) is None:  # noqa: ASYNC110  another process brings it about
            await anyio.sleep(0.05)
    return ending


def guardian_of(record: DetachedProgram) -> psutil.Process:
    words = ["trunkline.workers.tools.program_supervisor", str(record.folder)]
    everybody = psutil.process_iter(["cmdline"])
    (found,) = [one for one in everybody if (one.info["cmdline"] or [])[2:4] == words]
    return found


@pytest.mark.kill
async def test_MN_F15_a_background_task_in_docker(tmp_path: Path) -> None:
    """The task reports its output and exit code and ends at its timeout. It survives the worker, ends by its owner's
    command, and ends when its supervisor is killed without a live worker: no container is left."""
    home = tmp_path / "home"
    async with started_platform(tmp_path, 2.0) as running:
        assert (await ended(await begin(running, BEAT))).killed == "timeout"
    async with started_platform(tmp_path, 600.0) as running:
        short = await begin(running, "echo out; echo err >&2; exit 3")
        ending = await ended(short)
        assert (ending.exit_code, ending.killed, ending.fault) == (3, "", "")
        assert sorted(short.tail(9, 99).splitlines()) == ["err", "out"]
        stopped, orphan = await begin(running, BEAT), await begin(running, BEAT)
    await becomes(2, home)
    assert (stopped.status(), orphan.status()) == ("running", "running")
    done = await anyio.to_thread.run_sync(partial(run_trunkline, home, "tasks", "stop", stopped.name))
    assert done.stdout == f"{stopped.name}: cancelled\n"
    await becomes(1, home)
    guardian_of(orphan).kill()
    await becomes(0, home)
    assert orphan.status() == "lost"


class Between:
    """A socket in front of the engine's own, which can make the engine hang. It runs in threads, beside the tested
    code."""

    def __init__(self, path: Path) -> None:
        self.host = f"unix://{path}"
        self._real = DockerEngine().host.removeprefix("unix://")
        self._running = threading.Event()
        self._running.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def hang(self) -> None:
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    def close(self) -> None:
        self.resume()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._real)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, come: socket.socket, go: socket.socket) -> None:
        with suppress(OSError):
            while piece := come.recv(65536):
                self._running.wait()
                go.sendall(piece)
            go.shutdown(socket.SHUT_WR)


@pytest.fixture
def between(tmp_path: Path) -> Iterator[Between]:
    made = Between(tmp_path / "docker.sock")
    yield made
    made.close()


async def test_a_hung_engine_blocks_no_caller(
    tmp_path: Path, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program can be ended, and its caller continues; a container that still runs is removed once the engine
    answers. Until then nothing is started, and the reason is reported."""
    monkeypatch.setattr(processes, "KILL_SECONDS", 0.5)
    monkeypatch.setattr(backends, "SWEEP_SECONDS", 0.2)
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    async with anyio.create_task_group() as tasks:
        settings = SandboxSettings(backend="docker", image=image_name(), warm_containers=0)
        sandbox = Docker(settings, home, host=between.host)
        tasks.start_soon(sandbox.serve)
        process = await sandbox.start(("sh", "-c", BEAT), workspace=workspace, env={})
        await becomes(1, home)
        reported: list[int | None] = []

        async def wait() -> None:
            reported.append(await process.wait())

        async with anyio.create_task_group() as waiting:
            waiting.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            between.hang()
            monkeypatch.setattr(engines, "PING_SECONDS", 0.5)
            with anyio.fail_after(60):
                await process.kill("cancelled")
        assert (reported, process.killed) == ([None], "cancelled")
        other = Docker(settings, home, host=between.host)
        assert "did not answer" in (await other.unavailable() or "")
        with pytest.raises(ToolError, match="did not answer"):
            await other.run(("true",), workspace=workspace, env={})
        with pytest.raises(EngineError, match="did not answer"):
            await other.end_all()
        assert len(await becomes(1, home)) == 1
        between.resume()
        await becomes(0, home)
        tasks.cancel_scope.cancel()


@pytest.mark.kill
async def test_a_guardian_does_not_hang_with_its_engine(
    tmp_path: Path, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task's time is over: the guardian reports it and ends, and removes the container when it can."""
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", between.host)
        async with started_platform(tmp_path, 3.0) as running:
            record = await begin(running, BEAT)
            between.hang()
            assert (await ended(record)).killed == "timeout"
            between.resume()
    await becomes(0, tmp_path / "home")


async def test_a_container_has_only_its_configured_network(tmp_path: Path) -> None:
    """It has no network; one that does not reach this machine's loopback; or the host network, which does."""
    sandbox = Docker(
        SandboxSettings(backend="docker", image=image_name(), warm_containers=0), tmp_path / "home"
    )

    async def greet(client: SocketStream) -> None:
        async with client:
            await client.send(b"hello")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, greet)
        for limits, hears in (
            (SandboxLimits(), b""),
            (SandboxLimits(network=True), b""),
            (SandboxLimits(network=True, host_network=True), b"hello"),
        ):
            argv = ("nc", "-w", "3", "127.0.0.1", str(port))
            ran = await sandbox.run(argv, workspace=tmp_path, env={}, limits=limits)
            assert ran.stdout == hears, (limits, ran)
        tasks.cancel_scope.cancel()
