"""A client of a platform that tests share, with a block that no other test uses: conversations, memory and workspace
are its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.home.paths import Home
from trunkline.testing.platform import Platform, PlatformClient
from trunkline_bus import new_id


class BlockClient(PlatformClient):
    """A client whose new conversations belong to one block. ``platform`` is the shared platform."""

    def __init__(self, shared: Platform, block: str) -> None:
        super().__init__(shared.bus, timeout=shared.timeout)
        self.platform = shared
        self.block = block

    @property
    def home(self) -> Home:
        """The folders of the home."""
        return self.platform.home

    @property
    def url(self) -> str:
        """The gateway's HTTP address."""
        return self.platform.url

    @property
    def token(self) -> str:
        """The bearer token for the HTTP interface."""
        return self.platform.token

    @property
    def workspace(self) -> Path:
        """The folder of the block's file tools."""
        return self.platform.home.workspace(self.block)

    async def send(self, text: str, **fields: Any) -> MessageAccepted:
        """Send a message, to the block unless it names a conversation or another block."""
        if not fields.get("conversation"):
            fields.setdefault("block", self.block)
        return await super().send(text, **fields)


async def client_of_new_block(shared: Platform) -> BlockClient:
    """Create a block, and return a client of it."""
    block = new_id().lower()
    await shared.gateway.create_block(block)
    return BlockClient(shared, block)


@asynccontextmanager
async def stopped_at_the_end(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of a new block. At the end its turns are cancelled, its questions are withdrawn and the permissions that
    were granted in it are revoked.
    """
    client = await client_of_new_block(shared)
    yield client
    await shared.gateway.stop_block(client.block)
    for grant in (await shared.gateway.grants()).grants:
        await shared.gateway.forget_grant(grant.id)
    with anyio.fail_after(client.timeout):
        while await shared.gateway.waiting():  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.02)
