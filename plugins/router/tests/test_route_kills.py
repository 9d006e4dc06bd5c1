"""A monitor is killed before and after it has recorded a route: the turn has one route, and keeps it."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.shared_platforms import ALL_WORKERS
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

ADAPTER = '''
"""A model that notes its requests, and waits for the file named by the purpose. Each route is another one."""

import json
from pathlib import Path

import anyio
import trunkline
from trunkline.api.model import Finish, ModelAdapter, Text

FOLDER = Path(__file__).parent
NOTES = FOLDER / "requests.jsonl"


class Noting(ModelAdapter):
    name = "noting"
    vendor = "noting"

    async def stream(self, request):
        with NOTES.open("a") as notes:
            notes.write(json.dumps([request.purpose, request.turn, [tool.name for tool in request.tools]]) + "\\n")
        if request.purpose == "route":
            asked = sum('["route"' in line for line in NOTES.read_text().splitlines())
            while not (FOLDER / "route").exists():
                await anyio.sleep(0.02)
            yield Text("research" if asked % 2 else "code")
        else:
            while not (FOLDER / "turn").exists():
                await anyio.sleep(0.02)
            yield Text("Done.")
        yield Finish(model="noting")


@trunkline.hookimpl
def trunkline_models():
    return [Noting()]
'''


class Notes:
    """What the model was asked, and what it waits for."""

    def __init__(self, running: ProcessPlatform) -> None:
        self._folder: Path = running.home.path / "test-plugins"
        for name in ("route", "turn"):
            (self._folder / name).unlink(missing_ok=True)

    def requests(self, purpose: str, turn: str) -> list[list[str]]:
        """The tools of the requests of a turn."""
        notes = self._folder / "requests.jsonl"
        noted: list[Any] = (
            [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        )
        return [tools for why, whose, tools in noted if (why, whose) == (purpose, turn)]

    def let_go(self, name: str) -> None:
        (self._folder / name).touch()


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(90):
        while not holds():  # noqa: ASYNC110 - another process decides
            await anyio.sleep(0.02)


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("routes")
    config = {"runtime.provider_adapter": "noting"}
    async with process_platform(
        home, config=config, plugins={"noting": ADAPTER}, workers=ALL_WORKERS
    ) as platform:
        write = WriteMemory(path="preferences.toml", content="[router]\non = true\n", actor="owner")
        await platform.bus.call(MEMORY_WRITE, write)
        yield platform


async def test_a_turn_keeps_its_route_after_a_kill(running: ProcessPlatform) -> None:
    """The next monitor asks nobody, although the model would choose another category now."""
    notes = Notes(running)
    notes.let_go("route")
    accepted = await running.send("explain how the tides come about")
    await until(lambda: len(notes.requests("turn", accepted.turn)) == 1)
    running.kill("monitor")
    notes.let_go("turn")
    await running.restart("monitor")
    assert (await running.answer(accepted)).text == "Done."
    assert len(notes.requests("route", accepted.turn)) == 1
    before, after = notes.requests("turn", accepted.turn)
    assert before == after and "web_search" in after and "write_file" not in after


async def test_a_route_that_was_not_recorded_is_decided_again(running: ProcessPlatform) -> None:
    """The monitor dies while the model is asked about the category; the turn is answered once."""
    notes = Notes(running)
    accepted = await running.send("explain how the winds come about")
    await until(lambda: len(notes.requests("route", accepted.turn)) == 1)
    running.kill("monitor")
    notes.let_go("route")
    notes.let_go("turn")
    await running.restart("monitor")
    assert (await running.answer(accepted)).text == "Done."
    assert len(notes.requests("route", accepted.turn)) == 2
    assert len(notes.requests("turn", accepted.turn)) == 1
