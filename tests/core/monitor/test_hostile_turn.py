"""What a hostile reviewer found: the turn under bad moments, with all workers in one process on a real server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.abc.context import TurnInfo
from trunkline.abc.models import ModelAdapter
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class Models:
    """A plugin that brings a scripted model."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


class Tools:
    """Tools for the tests; what they did is in ``log``."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = anyio.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.log.append(text)
            return f"noted {text}"

        @trunkline.tool(effect="read")
        async def wait() -> str:
            """Wait until let go."""
            await self.gate.wait()
            return "let go"

        return [note, wait]


@asynccontextmanager
async def scripted(
    *plugins: object, home: Path | None = None, **config: Any
) -> AsyncIterator[tuple[Platform, ScriptedModel]]:
    model = ScriptedModel()
    settings = {"runtime.provider_adapter": model.name, **config}
    async with platform(home, plugins=[Models(model), *plugins], config=settings) as running:
        yield running, model


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 10.0) -> None:
    with anyio.fail_after(seconds):
        while not await check():  # noqa: ASYNC110 - what is waited for is in other workers
            await anyio.sleep(0.02)


class Cap:
    """A plugin that stops every turn after two steps."""

    @trunkline.hookimpl
    def trunkline_stop_turn(self, turn: TurnInfo) -> str | None:
        return "two steps are enough" if turn.step >= 2 else None


async def test_a_plugin_stops_a_turn_before_its_next_step() -> None:
    """The turn ends as stopped, is stored, and the conversation goes on."""
    tools = Tools()
    async with scripted(tools, Cap()) as (running, model):
        answer = await running.say(" ;; ".join(['call:note {"text": "a"}'] * 5))
        assert answer.ended.reason == "stopped" and tools.log == ["a", "a"] and len(model.requests) == 2
        assert (await running.say("say:on", conversation=answer.accepted.conversation)).text == "on"
