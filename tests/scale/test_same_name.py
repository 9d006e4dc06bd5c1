"""Workers with the same host and process id, as in containers made from one image."""

from pathlib import Path

import anyio
import pytest

from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.runtime.overview import OverviewReader
from trunkline.runtime.worker_host import WorkerHostSettings, run_worker
from trunkline.testing.platform import Platform, platform
from trunkline.workers.monitor.worker import MonitorWorker

pytestmark = pytest.mark.anyio


async def test_two_monitors_of_the_same_host_and_process_id_share_the_work(tmp_path: Path) -> None:
    """A worker's id is drawn again at each start, so nothing depends on the names of hosts and processes."""
    async with platform(tmp_path, workers=("gateway", "memory", "tools")) as running:
        settings = WorkerHostSettings(running.config, running.instance.bus, prepare_bus=False)
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                await tasks.start(run_worker, MonitorWorker, settings, stop)
            beats: list[WorkerHeartbeat] = []
            with anyio.fail_after(60):
                while sorted(len(beat.pins) for beat in beats) != [4, 4]:
                    answer = await running.say("hello")
                    assert answer.ended.reason == "stop"
                    beats = await monitors(running)
            stop.set()
    assert len({beat.id for beat in beats}) == 2
    assert len({(beat.host, beat.pid) for beat in beats}) == 1


async def monitors(running: Platform) -> list[WorkerHeartbeat]:
    """The monitors that live."""
    return [beat for beat in (await OverviewReader(running.bus).read()).workers if beat.kind == "monitor"]
