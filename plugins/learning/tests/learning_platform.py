"""A platform with learning, which tests share, and functions that read its learned items."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import trunkline
from tests.block_client import BlockClient
from tests.shared_model import SharedModel
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.memory.chunks import ListChunks
from trunkline.contracts.memory.files import WriteManyMemory, WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_CHUNKS, MEMORY_WRITE, MEMORY_WRITE_MANY
from trunkline.contracts.streams import FACT_STREAM, LEARNER_CONSUMER
from trunkline.contracts.turns.subjects import TURN_FACT
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import new_id
from trunkline_bus.streams.admin import consumer_state
from trunkline_learning.fact_chunks import forget_facts

ON = "[learning]\non = true\n"
WORDS_ALONE = ON + 'model = "none"\n'

LEARNED_FILES = ("models/**/*", "learning/*", "profile.json")
"""Where the learner keeps its files in memory."""


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


class LearningClient(BlockClient):
    """A client of a platform with learning, with a block of its own. ``model`` answers people and the learner."""

    def __init__(self, shared: Platform, block: str, model: ScriptedModel) -> None:
        super().__init__(shared, block)
        self.model = model
        self.sent = 0

    async def send(self, text: str, **fields: Any) -> MessageAccepted:
        """Send a message (see ``BlockClient``)."""
        self.sent += 1
        return await super().send(text, **fields)

    async def prefer(self, preferences: str) -> None:
        """Write the owner's preferences. They apply at once; those that a person edits by hand, a moment later."""
        request = WriteMemory(path="preferences.toml", content=preferences, actor="owner")
        await self.bus.call(MEMORY_WRITE, request)


@asynccontextmanager
async def learning(home: Path, *plugins: object) -> AsyncIterator[tuple[Platform, SharedModel]]:
    """A platform with the shop and these plugins. Learning is off."""
    model = SharedModel()
    config = {"runtime.provider_adapter": model.name}
    async with platform(home, plugins=[Shop(model), *plugins], config=config) as running:
        yield running, model


async def learning_client(shared: Platform, model: ScriptedModel) -> LearningClient:
    """Switch learning by words on, and return a client with a new block."""
    client = LearningClient(shared, new_id().lower(), model)
    await shared.gateway.create_block(client.block)
    await client.prefer(WORDS_ALONE)
    return client


async def forget_everything(running: LearningClient) -> None:
    """Leave nothing learned, once the learner has processed every turn of the client."""
    await until(lambda: passed_over(running, running.sent))
    await forget_facts(running.bus, None, actor="owner")
    memory = running.home.memory
    kept = [path for pattern in LEARNED_FILES for path in memory.glob(pattern) if path.is_file()]
    if kept:
        gone = tuple(path.relative_to(memory).as_posix() for path in kept)
        await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={}, gone=gone, actor="owner"))


async def until(done: Callable[[], Awaitable[Any] | Any], seconds: float = 60.0) -> Any:
    with anyio.fail_after(seconds):
        while True:
            found = done()
            found = await found if isinstance(found, Awaitable) else found
            if found:
                return found
            await anyio.sleep(0.05)


def learned(running: LearningClient) -> int:
    """From how many turns was learned."""
    try:
        return json.loads((running.home.memory / "learning/position.json").read_text())["count"]
    except FileNotFoundError:
        return 0


def texts(running: LearningClient, pattern: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(running.home.memory.glob(pattern))]


async def passed_over(running: LearningClient, turns: int) -> bool:
    """Report whether the learner has processed the given number of turns of the block, with any result."""
    reported = [fact async for fact in running.bus.history(TURN_FACT, block=running.block, fact="finished")]
    state = await consumer_state(running.bus, FACT_STREAM, LEARNER_CONSUMER.name)
    return len(reported) == turns and state.waiting == state.ack_pending == 0


async def said(running: LearningClient, text: str, **given: Any) -> TurnAnswer:
    """Say something and wait until it is learned from."""
    before = learned(running)
    answer = await running.say(text, **given)
    await until(lambda: learned(running) > before)
    return answer


async def facts_of(running: LearningClient, **given: Any) -> list[Chunk]:
    request = ListChunks(actor="owner", block=running.block, tags=("learned",), **given)
    return list((await running.bus.call(MEMORY_CHUNKS, request)).chunks)
