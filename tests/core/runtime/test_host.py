"""One worker: opened, served, drained and closed."""

from pathlib import Path

import anyio
import pytest
from workers_for_tests import RecordedWorkers, config_at, until

from trunkline.contracts.tools.messages import ListTools, ToolCatalogue
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.runtime.connection_settings import bus_settings
from trunkline.runtime.worker import Worker
from trunkline.runtime.worker_host import WorkerHostSettings, run_worker
from trunkline_bus import EmbeddedServer, NoResponders, Request, connect

pytestmark = pytest.mark.anyio


def settings_for(home: Path, server: EmbeddedServer) -> WorkerHostSettings:
    config = config_at(home)
    return WorkerHostSettings(
        config, bus_settings(config, url=server.url, user=server.user, password=server.password)
    )


async def test_serve_still_runs_while_the_worker_drains(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """Running work can finish: serve() is cancelled only after drain()."""
    seen: list[str] = []

    class Busy(Worker):
        kind: WorkerKind = "monitor"  # type: ignore[misc]

        async def open(self) -> None:
            self.finished = anyio.Event()

        async def serve(self) -> None:
            try:
                await stop.wait()
                seen.append("finished")
                self.finished.set()
                await anyio.sleep_forever()
            finally:
                seen.append("serve ended")

        async def drain(self) -> None:
            await self.finished.wait()
            seen.append("drained")

        async def close(self) -> None:
            seen.append("closed")
            await super().close()

    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(run_worker, Busy, settings_for(tmp_path, nats_server), stop)
        stop.set()
    assert seen == ["finished", "drained", "serve ended", "closed"]


async def test_a_worker_that_does_not_drain_is_closed_all_the_same(
    tmp_path: Path, nats_server: EmbeddedServer
) -> None:
    """The deadline holds for a worker that hangs."""
    seen: list[str] = []

    class Stuck(Worker):
        kind: WorkerKind = "tools"  # type: ignore[misc]
        drain_seconds = 0.1

        async def open(self) -> None:
            stop.set()

        async def drain(self) -> None:
            await anyio.sleep_forever()

        async def close(self) -> None:
            seen.append("closed")
            await super().close()

    stop = anyio.Event()
    with anyio.fail_after(60):
        await run_worker(Stuck, settings_for(tmp_path, nats_server), stop)
    assert seen == ["closed"]


async def test_a_closed_worker_does_not_answer(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """While it drains new requests go to another member of the group, and the last answer is out before it closes."""
    settings = settings_for(tmp_path, nats_server)
    answered: list[str] = []
    begun, go_on, stop = anyio.Event(), anyio.Event(), anyio.Event()

    class Answering(Worker):
        kind: WorkerKind = "tools"  # type: ignore[misc]

        async def open(self) -> None:
            await self.context.service.add(LIST_TOOLS, self.answer)

        async def answer(self, request: Request[ListTools]) -> ToolCatalogue:
            begun.set()
            await go_on.wait()
            answered.append("answered")
            return ToolCatalogue(version=request.data.block)

        async def drain(self) -> None:
            with pytest.raises(NoResponders):
                await bus.call(LIST_TOOLS, ListTools(block="late"), timeout=0.1)
            go_on.set()

        async def close(self) -> None:
            answered.append("closed")
            await super().close()

    async def ask() -> None:
        assert (await bus.call(LIST_TOOLS, ListTools(block="early"))).version == "early"

    async with connect(settings.bus) as bus, anyio.create_task_group() as tasks:
        await tasks.start(run_worker, Answering, settings, stop)
        tasks.start_soon(ask)
        await begun.wait()
        stop.set()
    assert answered == ["answered", "closed"]


async def test_a_crash_is_raised_unwrapped_after_the_worker_closed(
    tmp_path: Path, nats_server: EmbeddedServer, recorded_workers: RecordedWorkers
) -> None:
    """The host raises what serve() raised, not a group around it."""
    recorded_workers.types["tools"].crash.set()
    with pytest.raises(RuntimeError, match="boom"):
        await run_worker(recorded_workers.types["tools"], settings_for(tmp_path, nats_server), anyio.Event())
    assert recorded_workers.events[-1] == ("tools", "close")


async def test_a_worker_with_nothing_left_to_do_ends_its_host(
    tmp_path: Path, nats_server: EmbeddedServer
) -> None:
    """Returning from serve() is an end in good order."""

    class Brief(Worker):
        kind: WorkerKind = "channels"  # type: ignore[misc]

        async def open(self) -> None: ...

        async def serve(self) -> None: ...

    with anyio.fail_after(60):
        await run_worker(Brief, settings_for(tmp_path, nats_server), anyio.Event())


async def test_resources_are_left_in_reverse_order(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """Resources that open() entered end with the worker, a task group included."""
    seen: list[str] = []

    class Holding(Worker):
        kind: WorkerKind = "gateway"  # type: ignore[misc]

        async def open(self) -> None:
            self.resources.callback(seen.append, "first in, last out")
            group = await self.resources.enter_async_context(anyio.create_task_group())
            self.resources.callback(group.cancel_scope.cancel)
            group.start_soon(anyio.sleep_forever)
            self.resources.callback(seen.append, "last in, first out")

    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        worker = await tasks.start(run_worker, Holding, settings_for(tmp_path, nats_server), stop)
        assert isinstance(worker, Holding)
        stop.set()
    await until(lambda: len(seen) == 2)
    assert seen == ["last in, first out", "first in, last out"]
