"""Tool sources at the start of a worker: the first request for tools waits for their first tools, and not for long."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.contracts.tools.messages import ListTools
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.contracts.tools.tool import SourceContext, SourcedTool, ToolSource
from trunkline.testing.platform import Platform, platform
from trunkline.workers.tools import tool_sources

pytestmark = pytest.mark.anyio


class Server(ToolSource):
    """Publishes a tool ``seconds`` after its start."""

    name = "harbour"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._settled = anyio.Event()

    async def run(self, context: SourceContext) -> None:
        @trunkline.tool(effect="read")
        def tide() -> str:
            """Tell the tide."""
            return "high"

        await anyio.sleep(self._seconds)
        context.publish([SourcedTool(tide, source="harbour:north")])
        self._settled.set()
        await anyio.sleep_forever()

    async def settle(self) -> None:
        await self._settled.wait()


class Broken(ToolSource):
    """Cannot say when it has settled."""

    name = "broken"

    async def run(self, context: SourceContext) -> None:
        await anyio.sleep_forever()

    async def settle(self) -> None:
        raise OSError("no")


class SourcePlugin:
    """The sources of a test."""

    def __init__(self, *sources: ToolSource) -> None:
        self._sources = sources

    @trunkline.hookimpl
    def trunkline_tool_sources(self) -> Sequence[ToolSource]:
        return self._sources


async def listed(running: Platform) -> set[str]:
    return {spec.name for spec in (await running.bus.call(LIST_TOOLS, ListTools(block="main"))).tools or ()}


async def test_the_first_request_has_the_tools_of_a_slow_source(tmp_path: Path) -> None:
    """So a message to a platform that has just started can use a server that is being connected; a source that fails
    to settle hides nothing.
    """
    plugin = SourcePlugin(Broken(), Server(0.5))
    async with platform(tmp_path, workers=("memory", "tools"), plugins=[plugin]) as running:
        assert "tide" in await listed(running)


async def test_a_source_that_never_settles_delays_only_the_first_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the limit the other tools are there, without the ones that never came."""
    monkeypatch.setattr(tool_sources, "SETTLE_SECONDS", 0.2)
    plugin = SourcePlugin(Server(3600))
    async with platform(tmp_path, workers=("memory", "tools"), plugins=[plugin]) as running:
        with anyio.fail_after(60):
            found = await listed(running)
        assert "read_file" in found and "tide" not in found
