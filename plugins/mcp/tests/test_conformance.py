"""The official conformance suite, run against our host and our server. Needs npm, once, to install it."""

from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

import trunkline
from trunkline.testing.platform import platform
from trunkline_mcp.block_server.block import ServedBlock
from trunkline_mcp.block_server.server import BlockServer

from .conformance import suite
from .conformance.block_server_app import at_address, owner_guard
from .conformance.fixture import Fixture

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

OFFERED = {
    "2025-11-25": {
        "server-initialize", "ping", "completion-complete", "tools-list", "tools-call-simple-text", "tools-call-error",
        "tools-call-with-progress", "server-sse-multiple-streams", "resources-list", "dns-rebinding-protection",
    },
    "2026-07-28": {
        "completion-complete", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress",
        "server-sse-multiple-streams", "resources-list", "sep-2164-resource-not-found", "dns-rebinding-protection",
    },
}  # fmt: skip
"""The scenarios about what a block has to offer; the others want images, sampling or prompts of it."""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    try:
        suite.packages()
    except suite.Missing as error:
        pytest.skip(f"skipped: {error}")


class SuitesTools:
    """The tools that the suite calls, as a plugin's tools."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def test_simple_text() -> str:
            """Say something."""
            return "This is a simple text response for testing."

        @trunkline.tool(effect="read")
        def test_error_handling() -> str:
            """Fail."""
            raise trunkline.ToolError("This tool intentionally returns an error for testing")

        @trunkline.tool(effect="read")
        async def test_tool_with_progress(context: trunkline.ToolContext) -> str:
            """Take long enough for three signs of life."""
            for step in range(4):
                context.report(f"{step} of 4")
                await anyio.sleep(1)
            return "done"

        return [test_simple_text, test_error_handling, test_tool_with_progress]


async def verdicts(role: str, revision: str, words: list[str], place: Path) -> dict[str, suite.Verdict]:
    return dict(await anyio.to_thread.run_sync(partial(suite.run, role, revision, words, place)))


def failed(found: dict[str, suite.Verdict]) -> dict[str, suite.Verdict]:
    return {name: one for name, one in found.items() if one.scored and not one.ok}


@pytest.mark.parametrize("revision", suite.REVISIONS)
async def test_the_host_passes_the_client_conformance_suite(tmp_path, revision):
    """Connecting, calling, elicitation, OAuth; each scenario through the line that the tools worker keeps."""
    with suite.client_that_stays(tmp_path) as words:
        found = await verdicts("client", revision, words, tmp_path)
    assert failed(found) == {}
    assert sum(one.scored for one in found.values()) == {"2025-11-25": 18, "2026-07-28": 32}[revision]


@pytest.mark.parametrize("revision", suite.REVISIONS)
async def test_the_server_passes_the_server_conformance_suite(tmp_path, revision):
    """Our application and the SDK's server, with tools, resources and prompts as the suite wants to see them."""
    async with at_address(Fixture().server()) as url:
        found = await verdicts("server", revision, ["--url", url], tmp_path)
    assert failed(found) == {}
    assert sum(one.scored for one in found.values()) == {"2025-11-25": 30, "2026-07-28": 37}[revision]


@pytest.mark.parametrize("revision", suite.REVISIONS)
async def test_a_block_server_passes_the_conformance_suite_for_its_features(tmp_path, revision):
    """A block of a whole platform: tools through the dispatch, memory as resources."""
    async with platform(workers=("memory", "tools"), plugins=[SuitesTools()]) as running:
        served = BlockServer(ServedBlock(running.bus, "main", "suite"), owner_guard())
        async with at_address(served.server()) as url:
            found = await verdicts("server", revision, ["--url", url], tmp_path)
    assert {name for name in OFFERED[revision] if not found[name].ok} == set()
