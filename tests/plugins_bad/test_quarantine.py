"""A plugin that repeatedly ends its worker is identified and quarantined; the other plugins continue."""

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.tools.messages import CallTool, ListTools, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL, LIST_TOOLS
from trunkline.plugins.quarantine import Quarantine
from trunkline_bus import BusError, new_id

from .corpus import BAD, GOOD, install, install_bad

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

CONFIG = {"plugins.max_crashes": 2, "plugins.stall_timeout": 60.0}


@asynccontextmanager
async def tools_with(folder: Path, *dists: str, **config: Any) -> AsyncIterator[ProcessPlatform]:
    """A tools worker, as a process, with these bad plugins and a good one."""
    site = folder / "site"
    install(site, "a-good", GOOD)
    for dist in dists:
        install_bad(site, dist)
    async with process_platform(
        folder / "home",
        config=CONFIG | config,
        environ={"PYTHONPATH": str(site)},
        workers=("memory", "tools"),
    ) as running:
        yield running


async def called(running: ProcessPlatform, name: str) -> ToolOutcome | None:
    """Return the outcome of one call; None when its worker died during it."""
    call = CallTool(
        call=new_id("call"),
        name=name,
        arguments={},
        block="main",
        conversation="conv_1",
        turn="turn_1",
        actor="owner",
    )
    try:
        async with running.bus.call_streaming(CALL_TOOL, call, idle_timeout=20.0) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
    except BusError:
        return None
    return None


async def names(running: ProcessPlatform) -> set[str]:
    catalogue = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
    return {spec.name for spec in catalogue.tools or ()}


def plugins(running: ProcessPlatform, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    return subprocess.run(
        command, env=dict(running.environ), capture_output=True, text=True, timeout=60, check=False
    )


def state(running: ProcessPlatform, dist: str) -> dict[str, Any]:
    """Return the state of a distribution in ``trunkline plugins list``."""
    done = plugins(running, "plugins", "list", "--json")
    assert done.returncode == 0, done.stderr
    return next(one for one in json.loads(done.stdout)["plugins"] if one["owner"] == dist)


async def died(running: ProcessPlatform, *calls: str) -> None:
    """Call tools at the same time until the worker dies, then restart it."""
    async with anyio.create_task_group() as tasks:
        for name in calls:
            tasks.start_soon(called, running, name)
            await anyio.sleep(0.2)
        await running.processes["tools"].gone()
        tasks.cancel_scope.cancel()
    await running.restart("tools")


@pytest.mark.parametrize(
    ("dist", "says"),
    [
        ("bad-segfault", "segmentation fault"),
        ("bad-stack", "segmentation fault"),
        ("bad-stall", "held the whole worker up"),
    ],
)
async def test_a_plugin_that_crashes_its_worker_twice_is_not_loaded_again(
    tmp_path: Path, dist: str, says: str
) -> None:
    """Killed by a tool, the worker restarts with the plugin once, and then without it, and reports the reason of its
    end."""
    stall = 2.0 if dist == "bad-stall" else 60.0  # a busy machine holds others up for seconds, too
    async with tools_with(tmp_path, dist, **{"plugins.stall_timeout": stall}) as running:
        await died(running, BAD[dist].call)
        assert BAD[dist].call in await names(running)
        await died(running, BAD[dist].call)
        assert await names(running) >= {"good"} - {BAD[dist].call}
        log = running.processes["tools"].text()
        assert f"plugin {dist} is put into quarantine" in log and says in log


async def test_quarantine_is_reported_and_lifted(tmp_path: Path) -> None:
    """The good plugin answers all the time. ``plugins list`` and ``doctor`` name the quarantined plugin, the
    worker's end, and the fix; the fix works, once."""
    dist = "bad-osexit"
    async with tools_with(tmp_path, dist) as running:
        for _ in range(2):
            await died(running, "osexit")
            good = await called(running, "good")
            assert good is not None and good.output == "a good answer"
        assert "osexit" not in await names(running)
        reported = state(running, dist)
        assert reported["status"] == "quarantined" and "os._exit" in reported["reason"]
        assert f"trunkline plugins release {dist}" in reported["hint"]
        assert dist in plugins(running, "doctor").stdout
        assert plugins(running, "plugins", "release", dist).returncode == 0
        assert state(running, dist)["status"] == "loaded"
        again = plugins(running, "plugins", "release", dist)
        assert again.returncode == 1 and "is not in quarantine" in again.stderr


async def test_an_idle_plugin_is_not_blamed(tmp_path: Path) -> None:
    """Two tools are at work when the process dies at the hands of one: that one goes, its neighbour stays."""
    async with tools_with(tmp_path, "bad-segfault", "bad-swallow") as running:
        for _ in range(2):
            await died(running, "swallow", "segfault")
        assert state(running, "bad-segfault")["status"] == "quarantined"
        assert state(running, "bad-swallow")["status"] == "loaded"


async def test_a_requested_stop_blames_no_plugin(tmp_path: Path) -> None:
    """The worker is drained and then killed while a tool runs, as a service manager does: no plugin is blamed."""
    async with tools_with(tmp_path, "bad-swallow") as running:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(called, running, "swallow")
                await anyio.sleep(0.3)
                running.kill("tools", signal.SIGTERM)
                await until(lambda: "draining" in running.processes["tools"].text())
                await anyio.sleep(0.3)
                running.kill("tools")
                tasks.cancel_scope.cancel()
            await running.restart("tools")
        assert state(running, "bad-swallow")["status"] == "loaded"


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_an_endless_import_delays_only_one_start(tmp_path: Path) -> None:
    """The worker gets ready without it, and the next one does not wait for it again."""
    async with tools_with(tmp_path, "bad-hang", **{"plugins.import_timeout": 4.0}) as running:
        assert "Its import took longer than 4 s" in running.processes["tools"].text()
        assert "good" in await names(running)
        assert state(running, "bad-hang")["status"] == "quarantined"


async def test_kills_from_outside_blame_no_plugin(tmp_path: Path) -> None:
    """For any number of kills from outside during its work, a plugin without a fault stays."""
    async with tools_with(tmp_path, "bad-swallow") as running:
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(called, running, "swallow")
                await anyio.sleep(0.5)
                running.kill("tools")
                tasks.cancel_scope.cancel()
            await running.restart("tools")
        assert state(running, "bad-swallow")["status"] == "loaded"
        assert "bad-swallow (tool)" in running.processes["tools"].text(), (
            "it was not at work when it was killed"
        )


async def test_a_plugin_that_crashes_in_anothers_call_is_quarantined(tmp_path: Path) -> None:
    """A plugin that ends the process from a thread of its own, during another plugin's call, is quarantined itself."""
    async with tools_with(tmp_path, "bad-framer", "bad-swallow") as running:
        for _ in range(2):
            await died(running, "frame", "swallow")
        assert state(running, "bad-framer")["status"] == "quarantined"
        assert state(running, "bad-swallow")["status"] == "loaded"


DIES = """
import os, sys
from pathlib import Path
from trunkline.plugins.activity_log import ActivityLog, activity_log_folder
log = ActivityLog(activity_log_folder(Path(sys.argv[1])), "tools")
with log.recording(sys.argv[2], sys.argv[3]):
    os._exit(1)
"""


@pytest.mark.parametrize(
    ("owner", "doing", "away"),
    [
        ("trunkline-aardvark", "import", True),
        ("trunkline-files", "import", False),
        ("trunkline-aardvark", "tool", False),
    ],
)
def test_a_name_of_the_platform_does_not_protect_a_plugin(
    tmp_path: Path, owner: str, doing: str, away: bool
) -> None:
    """A crash during an import quarantines any plugin without a further mark, except the platform's own, known by
    its metadata. A crash at other work quarantines none without a mark."""
    (tmp_path / "run").mkdir()
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path), owner, doing], timeout=30, check=False)
    register = Quarantine(tmp_path, 1).update({owner: "1"})
    assert len(register.quarantined) == away
