"""A catalogue that is built in a thread never replaces one that was built from newer tools."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from trunkline.contracts.tools.messages import ToolSpec
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.plugins import OwnedItem
from trunkline.workers.tools.live_catalogue import LiveCatalogue, ToolSupply
from trunkline.workers.tools.tool_sources import ToolSourceRunner

pytestmark = pytest.mark.anyio


class Named(Tool):
    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name=name, description="Look.", parameters={"type": "object", "properties": {}}, effect="read"
        )

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        return ""


class Index:
    """The tools of isolated plugins or of remotes."""

    def __init__(self) -> None:
        self.version = 0
        self.found: tuple[str, ...] = ()

    def set(self, *names: str) -> None:
        self.found, self.version = names, self.version + 1

    def tools(self) -> tuple[OwnedItem[Tool], ...]:
        return tuple(OwnedItem("one", cast(Tool, Named(name))) for name in self.found)


class NoPlugins:
    """Plugins without tools. ``slow`` holds up the next thread that builds a catalogue of them."""

    record_activity = None

    def __init__(self) -> None:
        self.slow = False
        self.building, self.proceed = threading.Event(), threading.Event()

    def tools(self) -> list[Any]:
        if self.slow and threading.current_thread() is not threading.main_thread():
            self.slow = False
            self.building.set()
            assert self.proceed.wait(10)
        return []

    def tool_middleware(self) -> list[Any]:
        return []

    def is_outdated(self) -> bool:
        return False


def live_catalogue(plugins: NoPlugins, isolated: Index, remotes: Index, folder: Path) -> LiveCatalogue:
    settings = SimpleNamespace(runtime=SimpleNamespace(tool_sources=(folder,)))
    supply = ToolSupply(
        plugins=cast(Any, plugins),
        config=cast(Any, SimpleNamespace(settings=settings)),
        built_in=(),
        isolated=cast(Any, isolated),
        sources=ToolSourceRunner((), cast(Any, None)),
    )
    return LiveCatalogue(supply, cast(Any, remotes))


async def test_a_slow_rebuild_does_not_replace_a_newer_catalogue(tmp_path: Path) -> None:
    """A plugin publishes a tool while a rebuild, which has read the older tools, is still running."""
    plugins, isolated, remotes = NoPlugins(), Index(), Index()
    live = live_catalogue(plugins, isolated, remotes, tmp_path)
    plugins.slow = True
    remotes.set("far")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live.current)
        assert await anyio.to_thread.run_sync(plugins.building.wait, 10)
        isolated.set("near")
        tasks.start_soon(live.current)
        await anyio.sleep(0.1)
        plugins.proceed.set()
    names = {spec.name for spec in (await live.current()).specs()}
    assert names == {"near", "far"}


SLOW_PLUGIN = '''
import time

import trunkline


@trunkline.tool(effect="read")
async def late() -> str:
    """Look."""
    return ""


@trunkline.hookimpl
def trunkline_tools():
    time.sleep(0.5)
    return [late]
'''


async def test_a_caller_during_a_rebuild_waits_for_it(tools: Any, tmp_path: Path) -> None:
    """A plugin file whose hook takes long is in the catalogue of everyone who asks after it was written."""
    folder = tmp_path / "sources"
    folder.mkdir()
    async with tools(config={"runtime.tool_sources": [str(folder)]}) as caller:
        await caller.catalogue()
        (folder / "slow.py").write_text(SLOW_PLUGIN)
        names: list[set[str]] = []

        async def ask() -> None:
            names.append({spec.name for spec in (await caller.catalogue()).tools})

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
                await anyio.sleep(0.05)
    assert all("late" in seen for seen in names)
