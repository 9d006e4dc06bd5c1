"""A platform with learning, and functions that read its learned items."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import trunkline
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.memory.chunks import ListChunks
from trunkline.contracts.memory.subjects import MEMORY_CHUNKS
from trunkline.contracts.streams import FACT_STREAM, LEARNER_CONSUMER
from trunkline.contracts.turns.subjects import TURN_FACT
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus.streams.admin import consumer_state

ON = "[learning]\non = true\n"
WORDS_ALONE = ON + 'model = "none"\n'


class Shop:
    """A model, and a tool that fails on demand."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[Any]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[Any]:
        @trunkline.tool(effect="read")
        def open_shelf(name: str) -> str:
            """Open a shelf of the shop."""
            if name == "missing":
                raise trunkline.ToolError("No such file or folder: missing")
            return f"shelf {name} is open"

        return [open_shelf]


@asynccontextmanager
async def learning(
    home: Path, preferences: str, model: ScriptedModel | None = None, plugins: Sequence[object] = ()
) -> AsyncIterator[Platform]:
    found = model or ScriptedModel()
    config = {"runtime.provider_adapter": found.name}
    async with platform(home, plugins=[Shop(found), *plugins], config=config) as running:
        (running.home.memory / "preferences.toml").write_text(preferences)
        yield running


async def until(done: Callable[[], Awaitable[Any] | Any], seconds: float = 60.0) -> Any:
    with anyio.fail_after(seconds):
        while True:
            found = done()
            found = await found if isinstance(found, Awaitable) else found
            if found:
                return found
            await anyio.sleep(0.05)


def learned(running: Platform) -> int:
    """From how many turns was learned."""
    try:
        return json.loads((running.home.memory / "learning/position.json").read_text())["count"]
    except FileNotFoundError:
        return 0


def texts(running: Platform, pattern: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(running.home.memory.glob(pattern))]


async def passed_over(running: Platform, turns: int) -> bool:
    """Report whether the learner has processed the given number of turns, with any result."""
    reported = [fact async for fact in running.bus.history(TURN_FACT, fact="finished")]
    state = await consumer_state(running.bus, FACT_STREAM, LEARNER_CONSUMER.name)
    return len(reported) == turns and state.waiting == state.ack_pending == 0


async def said(running: Platform, text: str, **given: Any) -> TurnAnswer:
    """Say something and wait until it is learned from."""
    before = learned(running)
    answer = await running.say(text, **given)
    await until(lambda: learned(running) > before)
    return answer


async def facts_of(running: Platform, **given: Any) -> list[Chunk]:
    request = ListChunks(actor="owner", block="main", tags=("learned",), **given)
    return list((await running.bus.call(MEMORY_CHUNKS, request)).chunks)
