"""A tools worker that is killed in the middle of a retrieval, as a process of its own."""

from pathlib import Path

import anyio
import pytest
from rlm_processes import begun_by, none_left

from tests.support.processes import process_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

MODEL = '''
"""Calls retrieve, whose code never ends the first time."""
from pathlib import Path
import trunkline
from trunkline.api.model import Call
from trunkline.testing.scripted_model import ScriptedModel

def script(request):
    if request.purpose == "repl":
        mark = Path("MARK")
        again = mark.exists()
        mark.touch()
        return "```python\\n" + ("FINAL('after all')" if again else "while True: pass") + "\\n```"
    if request.messages[-1].role == "tool":
        return request.messages[-1].content
    return [Call(trunkline.ToolCall(id="1", name="retrieve", arguments={"query": "x"}))]

@trunkline.hookimpl
def trunkline_models():
    return [ScriptedModel(script)]
'''


async def test_killing_the_worker_ends_the_code_and_repeats_the_question(tmp_path: Path) -> None:
    """SIGKILL to the tools worker: no process of a session is left, and the turn ends with an answer."""
    plugins = {"scripted": MODEL.replace("MARK", str(tmp_path / "mark"))}
    config = {"runtime.provider_adapter": "scripted"}
    kinds = ("gateway", "monitor", "tools", "memory")
    async with process_platform(tmp_path / "home", config=config, plugins=plugins, workers=kinds) as running:
        accepted = await running.send("go")
        with anyio.fail_after(30):
            while not (sessions := begun_by(running.processes["tools"].pid)):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        running.kill("tools")
        await none_left(sessions)
        await running.restart("tools")
        assert "after all" in (await running.answer(accepted)).text
