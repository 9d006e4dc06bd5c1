"""Workers are killed while a task is split, while its steps run and while the results are joined.

The turn goes on at the step at which it was, and every step has one result.
"""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.shared_platforms import ALL_WORKERS, shared_platform
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

TASK = "Compare the tides of the two harbours A and B, and draw the curves."

ADAPTER = '''
"""A model that notes its requests, and waits for the file named by the kind of the request."""

import json
from pathlib import Path

import anyio
import trunkline
from trunkline.api.model import Finish, ModelAdapter, Text

FOLDER = Path(__file__).parent
STEPS = [
    {"description": "Look up A", "category": "research", "after": []},
    {"description": "Look up B", "category": "research", "after": []},
    {"description": "Draw both", "category": "code", "after": [1, 2]},
]


class Noting(ModelAdapter):
    name = "noting"
    vendor = "noting"

    async def stream(self, request):
        said = next(message.content for message in reversed(request.messages) if message.role == "user")
        kind = said.split("\\n")[1] if said.startswith("Step ") else request.purpose
        with (FOLDER / "requests.jsonl").open("a") as notes:
            notes.write(json.dumps([kind, said]) + "\\n")
        while not (FOLDER / kind).exists():
            await anyio.sleep(0.02)
        answers = {"split": json.dumps(STEPS), "route": "full", "join": "All is drawn."}
        yield Text(answers.get(kind, f"result of {kind}"))
        yield Finish(model="noting")


@trunkline.hookimpl
def trunkline_models():
    return [Noting()]
'''

KINDS = ("split", "Look up A", "Look up B", "Draw both", "join", "route")


class Script:
    """What the model was asked, and what it waits for."""

    def __init__(self, running: ProcessPlatform) -> None:
        self._folder: Path = running.home.path / "test-plugins"

    def hold(self, *kinds: str) -> None:
        """Begin anew: the model answers all requests but these."""
        (self._folder / "requests.jsonl").write_text("")
        for kind in KINDS:
            if kind in kinds:
                (self._folder / kind).unlink(missing_ok=True)
            else:
                (self._folder / kind).touch()

    def let_go(self, kind: str) -> None:
        (self._folder / kind).touch()

    def requests(self, kind: str) -> list[str]:
        noted: list[Any] = [
            json.loads(line) for line in (self._folder / "requests.jsonl").read_text().splitlines()
        ]
        return [said for what, said in noted if what == kind]

    async def reached(self, kind: str) -> None:
        """Wait until the model was asked."""
        await until(lambda: bool(self.requests(kind)))


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(90):
        while not holds():  # noqa: ASYNC110 - another process decides
            await anyio.sleep(0.02)


@pytest.fixture(scope="module")
async def module_platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    config = {"runtime.provider_adapter": "noting"}
    home = tmp_path_factory.mktemp("steps")
    async with process_platform(
        home, config=config, plugins={"noting": ADAPTER}, workers=ALL_WORKERS, timeout=120
    ) as running:
        text = '[router]\non = true\norchestrator = "on"\n'
        await running.bus.call(
            MEMORY_WRITE, WriteMemory(path="preferences.toml", content=text, actor="owner")
        )
        yield running


async def check_end(running: ProcessPlatform, script: Script, accepted: MessageAccepted) -> None:
    """The answer is complete, and the last step had the results of the first two."""
    answer = await running.answer(accepted)
    assert answer.text.endswith("All is drawn.") and answer.ended.reason == "stop"
    assert answer.text.count("[Step 3/3: Draw both]") == answer.text.count("Steps:") == 1
    last = script.requests("Draw both")[-1]
    assert "result of Look up A" in last and "result of Look up B" in last
    joined = script.requests("join")[-1]
    assert all(joined.count(f"result of {name}") == 1 for name in ("Look up A", "Look up B", "Draw both"))


@pytest.mark.parametrize("kind", ["split", "Look up B", "join"])
async def test_a_split_task_survives_the_kill_of_its_monitor(
    module_platform: ProcessPlatform, kind: str
) -> None:
    """What was done before is not asked for again."""
    async with shared_platform(module_platform) as running:
        script = Script(running)
        script.hold(kind)
        accepted = await running.send(TASK)
        await script.reached(kind)
        running.kill("monitor")
        script.let_go(kind)
        await running.restart("monitor")
        await check_end(running, script, accepted)
        before = KINDS[: KINDS.index(kind)]
        assert all(len(script.requests(one)) == 1 for one in before if one != "Look up A")


async def test_a_split_task_survives_the_kill_of_the_tools_worker(module_platform: ProcessPlatform) -> None:
    """While a step that needs the others runs."""
    async with shared_platform(module_platform) as running:
        script = Script(running)
        script.hold("Draw both")
        accepted = await running.send(TASK)
        await script.reached("Draw both")
        running.kill("tools")
        script.let_go("Draw both")
        await running.restart("tools")
        await check_end(running, script, accepted)
        assert len(script.requests("split")) == len(script.requests("Look up A")) == 1
