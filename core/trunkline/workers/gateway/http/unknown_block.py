"""What is said over HTTP of a block that is not there: which there are. Every credential may list them."""

from trunkline.config.problems import closest_matches
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.errors import InvalidField

MAX_NAMED = 20
"""How many blocks are named."""


async def unknown_block_error(blocks: BlockService, name: str, field: tuple[str, ...] | str) -> InvalidField:
    """The refusal of a request whose ``field`` names a block that is not there."""
    names = [block.name for block in (await blocks.list_blocks()).blocks]
    meant = closest_matches(name, names)
    slip = f"Did you mean {meant[0]}? " if meant else ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    there = f"There are: {', '.join(names[:MAX_NAMED])}{more}." if names else "There are none yet."
    return InvalidField(field, f"It is the name of a block. {slip}{there}", ErrorCode.NOT_FOUND)
