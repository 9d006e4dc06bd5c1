"""``/readyz`` after a kill: it never reports ready without a monitor that would answer."""

from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.workers.subjects import WORKER_BUCKET

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


@pytest.fixture(scope="module")
async def module_platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    async with process_platform(tmp_path_factory.mktemp("ready"), workers=ALL_WORKERS) as running:
        yield running


async def beats(running: ProcessPlatform, kind: str) -> list[int]:
    """Return the processes of a kind that still count as live."""
    entries = await running.bus.kv(WORKER_BUCKET).entries()
    return [entry.value.pid for entry in entries if entry.value is not None and entry.value.kind == kind]


async def until_ready(http: httpx.AsyncClient) -> None:
    with anyio.fail_after(60):
        while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110 - asked over HTTP
            await anyio.sleep(0.05)


@pytest.mark.parametrize("victim", ["monitor", "memory"])
async def test_readiness_requires_a_live_monitor(victim: str, module_platform: ProcessPlatform) -> None:
    """From the kill until another monitor runs the gateway reports that it is not ready, even while the killed one's
    last heartbeat is still unread. Once it is ready, a message is answered."""
    async with (
        shared_platform(module_platform) as running,
        httpx.AsyncClient(base_url=running.url, timeout=30) as http,
    ):
        await until_ready(http)
        await running.say("hello")
        running.kill(victim)
        await running.processes[victim].gone()
        said = set[int]()
        with anyio.fail_after(60):
            while await beats(running, victim) or len(said) == 0:
                said.add((await http.get("/readyz")).status_code)
        assert said == {503}
        await running.restart(victim)
        await until_ready(http)
        assert (await running.say("hello")).ended.code is None
