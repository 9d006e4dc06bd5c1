"""The files that every message is checked against, cached until memory reports a change."""

from dataclasses import dataclass

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.paths import block_file_path, is_block_file
from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
from trunkline.contracts.memory.cache import MemoryCache
from trunkline.contracts.memory.files import MemoryFile, ReadManyMemory
from trunkline.contracts.memory.subjects import MEMORY_READ_MANY
from trunkline.workers.gateway import block_file
from trunkline_bus import Bus

FRESH_SECONDS = 30.0
"""Seconds after which an entry is read again, in case a change event was lost."""


@dataclass(frozen=True, slots=True)
class CachedBlock:
    """The settings of a block; None for a block that does not exist.

    ``problem`` names the file that cannot be read, ``block.toml`` or the owner's ``preferences.toml``. Both
    may choose the model that receives the text. It is "" when both can be read.
    """

    config: BlockConfig | None
    problem: str = ""


class BlockCache(MemoryCache[CachedBlock]):
    """Looks up blocks by name. Call ``open`` before use."""

    def __init__(self, bus: Bus) -> None:
        async def read(block: str) -> CachedBlock:
            request = ReadManyMemory(paths=(block_file_path(block), PREFERENCES))
            reply = await bus.call(MEMORY_READ_MANY, request, timeout=10.0, repeatable=True)
            found = {file.path: file for file in reply.files}
            file = found.get(block_file_path(block))
            return CachedBlock(None) if file is None else _decode(file, found.get(PREFERENCES))

        def counts(path: str) -> bool:
            return path == PREFERENCES or is_block_file(path)

        super().__init__(
            bus, read, counts=counts, fresh_for=FRESH_SECONDS, keeps=lambda found: found.config is not None
        )


def _decode(file: MemoryFile, preferences: MemoryFile | None) -> CachedBlock:
    try:
        for one in (preferences, file):
            if one is not None and one.unread:
                raise SettingsFileError(one.unread)
        if preferences is not None:
            read_settings(preferences.path, preferences.content, Preferences)
        return CachedBlock(block_file.decode(file))
    except SettingsFileError as error:
        return CachedBlock(BlockConfig(enabled=False), str(error))
