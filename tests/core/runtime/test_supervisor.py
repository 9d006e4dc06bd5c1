"""All workers in one process: started in order, kept alive each by itself, drained in the opposite order."""

import os
import signal
import stat
from pathlib import Path

import pytest
from workers_for_tests import RecordedWorkers, config_at, until

from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.home.paths import Home
from trunkline.home.run_file import AlreadyRunning, read_run_file, run_file_path
from trunkline.runtime.supervisor import BootError, running_platform
from trunkline.workers import KINDS
from trunkline_bus import Bus, connect

pytestmark = pytest.mark.anyio


async def beats(bus: Bus) -> list[WorkerHeartbeat]:
    bucket = bus.kv(WORKER_BUCKET)
    entries = [await bucket.get(key) for key in await bucket.keys()]
    return [entry.value for entry in entries if entry is not None and entry.value is not None]


async def test_starts_tools_before_memory_before_the_rest(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """PA-F44: tools are discovered, then memory is mounted, and only then clients are admitted."""
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=KINDS):
        assert recorded_workers.did("open") == ["tools", "memory", "gateway", "monitor", "channels"]


async def test_callers_drain_before_servers(tmp_path: Path, recorded_workers: RecordedWorkers) -> None:
    """Each worker drains and closes before the ones it needs do."""
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=KINDS):
        pass
    assert (
        recorded_workers.did("drain")
        == recorded_workers.did("close")
        == ["channels", "monitor", "tools", "gateway", "memory"]
    )


async def test_a_crashed_worker_restarts_without_affecting_others(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """One worker's crash closes and restarts that worker alone."""
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=KINDS) as instance:
        first = instance.workers["tools"]
        recorded_workers.types["tools"].crash.set()
        await until(lambda: instance.workers.get("tools", first) is not first)
        assert recorded_workers.events.count(("tools", "close")) == 1
        assert [kind for kind in recorded_workers.did("close") if kind != "tools"] == []
        assert instance.restarts == {"tools": 1}


async def test_a_worker_that_cannot_open_stops_the_start_with_its_sentence(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """The error names the phase and has the worker's message; opened workers are closed again."""
    recorded_workers.types["memory"].refuse = True
    with pytest.raises(BootError, match=r"'memory and its history': The cupboard is locked\.") as caught:
        async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=KINDS):
            pass
    assert caught.value.hint == "Find the key."
    assert recorded_workers.did("close") == ["memory", "tools"]
    assert recorded_workers.did("open") == ["tools", "memory"]


async def test_a_worker_that_cannot_open_after_a_crash_is_tried_again(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """Once the platform runs, a worker that does not restart at once does not end it."""
    async with running_platform(
        config_at(tmp_path), recorded_workers.load, kinds=("tools", "memory")
    ) as instance:
        recorded_workers.types["tools"].refuse = True
        recorded_workers.types["tools"].crash.set()
        await until(lambda: instance.restarts.get("tools", 0) >= 2)
        recorded_workers.types["tools"].refuse = False
        await until(lambda: bool(recorded_workers.types["tools"].alive))
        assert recorded_workers.types["memory"].alive


async def test_a_second_instance_on_a_home_reports_the_pid_of_the_first(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """Two instances never share a home."""
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)):
        with pytest.raises(AlreadyRunning, match=rf"already runs on .* \(pid {os.getpid()}\)"):
            async with running_platform(config_at(tmp_path), RecordedWorkers().load, kinds=("tools",)):
                pass


async def test_the_run_file_is_private_and_removed_with_the_instance(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """The file that holds the bus password has mode 0600 and is removed at the end."""
    home = Home.at(tmp_path)
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)) as instance:
        run = read_run_file(home)
        assert run is not None and (run.pid, run.url) == (os.getpid(), instance.bus.url)
        assert stat.S_IMODE(run_file_path(home).stat().st_mode) == 0o600
    assert read_run_file(home) is None
    assert not run_file_path(home).exists()


async def test_a_run_file_of_a_killed_instance_is_ignored(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """After kill -9 the file exists and the lock does not: no command connects to the ended server."""
    home = Home.at(tmp_path)
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)):
        left = run_file_path(home).read_bytes()
    run_file_path(home).write_bytes(left)
    assert read_run_file(home) is None


async def test_every_worker_beats_and_answers_nats_micro(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """The worker bucket and $SRV.PING name each worker."""
    async with (
        running_platform(config_at(tmp_path), recorded_workers.load, kinds=KINDS) as instance,
        connect(instance.bus) as bus,
    ):
        found: list[WorkerHeartbeat] = []
        while len(found) < len(KINDS):
            found = await beats(bus)
        assert {beat.kind for beat in found} == set(KINDS)
        assert {beat.id for beat in found} == {worker.context.id for worker in instance.workers.values()}
        assert instance.workers["tools"].context.service.name == "trunkline-tools"


async def test_a_killed_server_restarts_with_its_streams_and_buckets(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """After SIGKILL of nats-server the workers continue, and its in-memory streams and buckets are created again."""
    async with (
        running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)) as instance,
        connect(instance.bus) as bus,
    ):
        server = instance.server
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: server.restarts == 1 and bus.connected)
        found: list[WorkerHeartbeat] = []
        while not found:
            try:
                found = await beats(bus)
            except Exception as error:  # the bucket is on its way
                assert "bucket" in str(error).lower() or "stream" in str(error).lower(), error
        assert recorded_workers.did("close") == []


async def test_a_plugin_whose_lifespan_fails_is_left_out(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """A broken plugin never takes a worker down."""
    from contextlib import asynccontextmanager

    import trunkline

    @asynccontextmanager
    async def broken(context):  # type: ignore[no-untyped-def]
        raise RuntimeError("no")
        yield

    class Plugin:
        @trunkline.hookimpl
        def trunkline_lifespan(self):  # type: ignore[no-untyped-def]
            return [broken]

    async with running_platform(
        config_at(tmp_path), recorded_workers.load, kinds=("tools",), extra=(Plugin(),)
    ):
        assert recorded_workers.types["tools"].alive


async def test_unreadable_preferences_are_a_gap_and_not_an_error(
    tmp_path: Path, recorded_workers: RecordedWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    """PA-F43: preferences that cannot be read are reported and the platform starts."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "preferences.toml").write_text("model = ")
    async with running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)):
        pass
    assert "preferences.toml cannot be read" in caplog.text


async def test_unreachable_nats_is_reported_with_its_address(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """A configured server that is not there stops the start, and nothing was opened."""
    config = config_at(tmp_path, bus__url="nats://127.0.0.1:4")
    with pytest.raises(BootError, match=r"'bus': .*127\.0\.0\.1:4"):
        async with running_platform(config, recorded_workers.load, kinds=KINDS):
            pass
    assert recorded_workers.events == []


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"runtime__provider_adapter": "nobody"}, "'adapter config': There is no model adapter 'nobody'"),
        (
            {"adapters__openai__baseurl": "http://x"},
            "'adapter config': adapters.openai.baseurl is not a setting",
        ),
    ],
)
async def test_wrong_adapter_settings_stop_the_start(
    tmp_path: Path, recorded_workers: RecordedWorkers, setting: dict[str, str], words: str
) -> None:
    """A misspelt key or adapter is an error with its path, before clients are admitted."""
    with pytest.raises(BootError, match=words):
        async with running_platform(config_at(tmp_path, **setting), recorded_workers.load, kinds=KINDS):
            pass
    assert recorded_workers.events == []


async def test_a_missing_key_is_reported_with_its_variable(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """Settings without the key of their vendor: the error names the vendor's usual variable."""
    config = config_at(tmp_path, adapters__groq__model="llama-3.3-70b-versatile")
    with pytest.raises(BootError, match="lacks a key") as failed:
        async with running_platform(config, recorded_workers.load, kinds=KINDS):
            pass
    assert "export GROQ_API_KEY=" in failed.value.hint


async def test_a_memory_worker_needs_no_adapter(tmp_path: Path, recorded_workers: RecordedWorkers) -> None:
    """A command that reads memory of a home with a wrong model configuration works, and does not wait for adapters."""
    config = config_at(tmp_path, runtime__provider_adapter="nobody")
    async with running_platform(config, recorded_workers.load, kinds=("memory",)):
        assert ("memory", "open") in recorded_workers.events


async def test_settings_of_a_removed_plugin_are_reported_as_a_gap(
    tmp_path: Path, recorded_workers: RecordedWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    """SWAP-3: the remaining settings of a removed plugin are reported and do not stop the start."""
    async with running_platform(
        config_at(tmp_path, plugins__gone__colour="red"), recorded_workers.load, kinds=("tools",)
    ):
        assert "plugins.gone" in caplog.text
