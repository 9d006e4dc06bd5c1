"""Which blocks there are, and what is said of one that is not there. Asks nobody and prints nothing."""

from collections.abc import Collection, Iterable

from trunkline.config.problems import near
from trunkline.contracts.memory.messages import ListMemory
from trunkline.contracts.memory.subjects import MEMORY_LIST
from trunkline.errors import ConfigError
from trunkline_bus import Bus, RemoteFault

SECONDS = 10.0


async def block_names(bus: Bus) -> list[str]:
    """The blocks that memory has; none in a home that nothing was started on."""
    try:
        there = await bus.call(MEMORY_LIST, ListMemory(path="blocks"), timeout=SECONDS)
    except RemoteFault as fault:
        if fault.code != "not_found":
            raise
        return []
    return [entry.path.rpartition("/")[2] for entry in there.entries]


async def insist_on_block(bus: Bus, block: str) -> None:
    """Raises ConfigError, which names those that there are, when there is no such block."""
    insist_on_one(block, await block_names(bus))


def insist_on_one(block: str, names: Collection[str]) -> None:
    """Raises ConfigError when the block is none of these, which are all."""
    if block not in names:
        raise no_block(block, names)


def no_block(block: str, names: Iterable[str]) -> ConfigError:
    """What is said of a block that is not there."""
    there = sorted(names)
    meant = near(block, there)
    slip = f"Did you mean {meant[0]}? " if meant else ""
    return ConfigError(
        f"There is no block {block}.",
        hint=f'{slip}There are: {", ".join(there) or "none yet"}. "trunkline blocks create" makes one, and the first '
        "start the block main.",
    )
