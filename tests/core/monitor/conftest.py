"""Shared by the tests of the monitor with all other workers: a scripted model, tools, and a gate that asks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Proceed, ToolInvocation
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel


class Models:
    """A plugin that brings a scripted model."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


class Tools:
    """Tools for the tests; ``log`` has their effects."""

    def __init__(self) -> None:
        self.waiting = 0
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
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
            self.waiting += 1
            try:
                await self.gate.wait()
            finally:
                self.waiting -= 1
            return "let go"

        return [note, wait]


class AskFirst:
    """A gate that wants a person's yes for every write."""

    stage = "gate"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        if invocation.spec.effect == "read" or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call, status="approval", call_hash=invocation.call_hash,
            question=f"Run {invocation.spec.name}?",
        )  # fmt: skip


class Gate:
    """A plugin with the gate."""

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> Sequence[Any]:
        return [AskFirst()]


def scripted(*plugins: object, **config: Any) -> AbstractAsyncContextManager[tuple[Platform, ScriptedModel]]:
    """A platform of its own with a scripted model."""
    return scripted_at(None, *plugins, **config)


@asynccontextmanager
async def scripted_at(
    home: Path | None, *plugins: object, **config: Any
) -> AsyncIterator[tuple[Platform, ScriptedModel]]:
    """The same in a home that may be there already."""
    model = ScriptedModel()
    settings = {"runtime.provider_adapter": model.name, **config}
    async with platform(home, plugins=[Models(model), *plugins], config=settings) as running:
        yield running, model


@dataclass(frozen=True)
class Shared:
    """A platform that tests share, its model and its tools. A person decides about every write."""

    running: Platform
    model: ScriptedModel
    tools: Tools


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One platform for the tests without plugins, settings or a home of their own."""
    tools = Tools()
    async with scripted(tools, Gate()) as (running, model):
        yield Shared(running, model, tools)


@pytest.fixture
def tools(shared: Shared) -> Tools:
    """The tools of the shared platform, which have done nothing."""
    shared.tools.forget()
    return shared.tools


@pytest.fixture
def model(shared: Shared) -> ScriptedModel:
    """The model of the shared platform, which was asked nothing."""
    shared.model.requests.clear()
    return shared.model


@pytest.fixture
async def client(shared: Shared, tools: Tools, model: ScriptedModel) -> BlockClient:
    """A client of the shared platform, with a block of its own."""
    return await client_of_new_block(shared.running)
