"""The policy of each block, read from its ``block.toml`` whenever it is needed. Fails closed."""

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.memory.store import MemoryStore
from trunkline_bus import Refusal


class BlockPolicies:
    """Reads policies through the store, so that a change counts from the next request on. The ``default`` block has the
    default policy before its first message has made it."""

    def __init__(self, store: MemoryStore, default: str) -> None:
        self._store = store
        self._default = default

    async def get(self, block: str | None) -> MemoryPolicy:
        """The policy of a block; without a block the default one.

        Raises:
            Refusal: ``not_found``: there is no such block. ``invalid_policy``: its file cannot be used, so nothing of
                the block's is remembered or read.
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
