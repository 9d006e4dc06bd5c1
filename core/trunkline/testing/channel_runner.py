"""A channel that runs on a scripted gateway for the duration of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from trunkline.contracts.channels.channel import Channel
    from trunkline.testing.scripted_gateway import ScriptedGateway


@asynccontextmanager
async def running_channel(
    channel: "Channel", gateway: "ScriptedGateway", *, seconds: float = 60.0
) -> AsyncIterator[None]:
    """Run the channel within the context, and cancel it at the end. Raises TimeoutError after ``seconds``, and what
    the channel raises.
    """
    with anyio.fail_after(seconds):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.run, gateway)
            yield
            tasks.cancel_scope.cancel()
