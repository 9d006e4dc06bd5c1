"""Schedules on a whole platform: files become timers, due times become turns, and what became of them is shown."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.block_client import BlockClient, client_of_new_block
from trunkline.api.memory import utc_now
from trunkline.testing.platform import Platform

from .pulse_platform import ended_run, pulse_platform, state_when, texts_of, write_schedule_file

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    async with pulse_platform() as running:
        yield running


@pytest.fixture
async def client(shared: Platform) -> BlockClient:
    return await client_of_new_block(shared)


def once(seconds: float = 1.0) -> str:
    """The line of a file that is due once, so many seconds from now."""
    return f"at = {utc_now() + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}\n"


async def test_MB_F6_a_due_time_becomes_a_turn_in_the_background(client: BlockClient) -> None:
    """A file that a person writes is armed; its message reaches the agent through the gateway, and its end is shown."""
    await write_schedule_file(client.bus, client.block, "hello", f'instruction = "say:hello"\n{once()}')
    run = await ended_run(client, "hello")
    assert run.outcome == "finished" and await texts_of(client, run) == ["say:hello", "hello"]
    state = await state_when(client, "hello", lambda state: state.next_due is None)
    assert not state.claimed
