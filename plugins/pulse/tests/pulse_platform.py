"""A platform that the tests of schedules share, with blocks of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

import trunkline
from tests.block_client import BlockClient
from trunkline.api.bus import Bus
from trunkline.api.memory import MEMORY_WRITE_MANY, WriteManyMemory
from trunkline.api.schedule import ScheduleRun, ScheduleState, schedule_path
from trunkline.api.testing import platform
from trunkline.testing.platform import Platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_pulse.schedule_store import ScheduleStore

SECONDS = 60.0


class Models:
    """A plugin with a model that says what it is told to say."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@asynccontextmanager
async def pulse_platform(*, plugins: tuple[object, ...] = (), **config: Any) -> AsyncIterator[Platform]:
    """A platform with a scripted model."""
    settings = {"runtime.provider_adapter": "scripted", "plugins.pulse.time_zone": "UTC", **config}
    async with platform(plugins=[Models(), *plugins], config=settings) as running:
        yield running


async def write_schedule_file(bus: Bus, block: str, name: str, text: str) -> None:
    """Write the file of a schedule, as its owner would; "" removes it."""
    path = schedule_path(block, name)
    request = WriteManyMemory(files={path: text} if text else {}, gone=() if text else (path,), actor="owner")
    await bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)


async def state_when(client: BlockClient, name: str, fits: Any) -> ScheduleState:
    """Wait until the state of a schedule fits, and return it. Raises TimeoutError."""
    store = ScheduleStore(client.bus)
    state: ScheduleState | None = None
    try:
        with anyio.fail_after(SECONDS):
            while True:
                state = await store.state(client.block, name)
                if state is not None and fits(state):
                    return state
                await anyio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"the state does not fit: {state}") from None


async def ended_run(client: BlockClient, name: str, number: int = 1) -> ScheduleRun:
    """Wait until so many runs of a schedule have ended, and return the last of these."""

    def ended(state: ScheduleState) -> list[ScheduleRun]:
        return [run for run in state.runs if run.ended_at is not None]

    return ended(await state_when(client, name, lambda state: len(ended(state)) >= number))[number - 1]


async def texts_of(client: BlockClient, run: ScheduleRun) -> list[str]:
    """Return the texts of a run's conversation."""
    return [message.content for message in (await client.gateway.conversation(run.conversation)).messages]


async def until(fits: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so. Raises TimeoutError."""
    with anyio.fail_after(SECONDS):
        while not await fits():  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.05)
