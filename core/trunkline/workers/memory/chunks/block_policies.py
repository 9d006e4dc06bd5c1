"""The memory policy of each block, read from its ``block.toml`` on every use. Without a valid policy nothing is
allowed.
"""

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.memory.store import MemoryStore
from trunkline_bus import Refusal


class BlockPolicies:
    """Reads policies through the store, so that a changed policy applies from the next request on.

    The ``default`` block has the default policy until its first message creates it.
    """

    def __init__(self, store: MemoryStore, default: str) -> None:
        self._store = store
        self._default = default

    async def get(self, block: str | None) -> MemoryPolicy:
        """Return the policy of a block; for None return the default policy.

        Raises:
            Refusal: ``not_found``: the block does not exist. ``invalid_policy``: its ``block.toml`` is not valid, so no
                chunk of the block is stored or read.
        """
        if block is None:
            return MemoryPolicy()
        path = block_file_path(block)
        try:
            text = (await self._store.read(path)).content
        except Refusal as refusal:
            if refusal.code != "not_found":
                raise
            if block == self._default:
                return MemoryPolicy()
            raise Refusal("not_found", f"There is no block called {block[:80]!r}.") from refusal
        try:
            return read_settings(path, text, BlockConfig).memory
        except SettingsFileError as error:
            raise Refusal("invalid_policy", f"Nothing is remembered or read. {error}") from error
