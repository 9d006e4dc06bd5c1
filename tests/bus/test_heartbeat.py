"""A function that is called at intervals while a context lasts."""

import anyio
import pytest

from trunkline_bus.errors import BusError
from trunkline_bus.heartbeat import Heartbeat

pytestmark = pytest.mark.anyio


async def test_the_heartbeat_lasts_as_long_as_its_context() -> None:
    """Again and again, and not any more behind it; a block that is over at once costs no beat."""
    beats = 0
    thrice = anyio.Event()

    async def beat() -> None:
        nonlocal beats
        beats += 1
        if beats == 3:
            thrice.set()

    async with anyio.create_task_group() as group:
        with Heartbeat(group, beat, 3600):
            pass
        with anyio.fail_after(60), Heartbeat(group, beat, 0.01):
            await thrice.wait()
        before = beats
        await anyio.sleep(0.1)
    assert beats == before


@pytest.mark.parametrize("error", [BusError("the line is down"), RuntimeError("a mistake")])
async def test_a_failed_heartbeat_is_the_last_and_breaks_nothing(error: Exception) -> None:
    """Neither the block nor the group, in which all other work of the connection is done."""
    beats = 0
    failed = anyio.Event()

    async def beat() -> None:
        nonlocal beats
        beats += 1
        failed.set()
        raise error

    async with anyio.create_task_group() as group:
        with anyio.fail_after(60), Heartbeat(group, beat, 0.01):
            await failed.wait()
            await anyio.sleep(0.1)
    assert beats == 1
