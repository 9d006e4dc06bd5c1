"""A client of a platform that tests share, with a block that no other test uses: conversations, memory and workspace
are its own."""

from pathlib import Path
from typing import Any

from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.testing.platform import Platform, PlatformClient
from trunkline_bus import new_id


class BlockClient(PlatformClient):
    """A client whose new conversations belong to one block. ``platform`` is the shared platform."""

    def __init__(self, shared: Platform, block: str) -> None:
        super().__init__(shared.bus, timeout=shared.timeout)
        self.platform = shared
        self.block = block

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
