"""The names of existing blocks, and the error for an unknown block. Does not ask or print."""

from collections.abc import Collection, Iterable

from trunkline.config.problems import closest_matches
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory.files import ListMemory
from trunkline.contracts.memory.subjects import MEMORY_LIST
from trunkline.errors import ConfigError
from trunkline_bus import Bus, RemoteFault

MEMORY_TIMEOUT = 10.0
"""Seconds to wait for a reply of memory."""


async def block_names(bus: Bus) -> list[str]:
    """Return the names of the blocks in memory; none in a home without memory."""
    try:
        there = await bus.call(MEMORY_LIST, ListMemory(path=BLOCKS_FOLDER), timeout=MEMORY_TIMEOUT)
    except RemoteFault as fault:
        if fault.code != "not_found":
            raise
        return []
    return [entry.path.rpartition("/")[2] for entry in there.entries]


async def require_block(bus: Bus, block: str) -> None:
    """Raise ConfigError, which lists the existing blocks, when the block does not exist."""
    require_known_block(block, await block_names(bus))


def require_known_block(block: str, names: Collection[str]) -> None:
    """Raise ConfigError when the block is not among ``known``, the names of all blocks."""
    if block not in names:
        raise unknown_block_error(block, names)


def unknown_block_error(block: str, names: Iterable[str]) -> ConfigError:
    """Return the error for a block that does not exist. It names the block and the most similar existing one."""
    there = sorted(names)
    meant = closest_matches(block, there)
    suggestion = f"Did you mean {meant[0]}? " if meant else ""
    return ConfigError(
        f"There is no block {block}.",
        hint=f'{suggestion}Known blocks: {", ".join(there) or "none yet"}. "trunkline blocks create" creates one; the '
        "first start creates the block main.",
    )
