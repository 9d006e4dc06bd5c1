"""What is said over HTTP of a block that is not there: which there are. Every credential may list them."""

from trunkline.config.problems import near
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.blocks import Blocks
from trunkline.workers.gateway.errors import InvalidField

MOST = 20
"""How many blocks are named."""


async def no_such_block(blocks: Blocks, name: str, field: tuple[str, ...] | str) -> InvalidField:
    """The refusal of a request whose ``field`` names a block that is not there."""
    names = [block.name for block in (await blocks.listed()).blocks]
    meant = near(name, names)
    slip = f"Did you mean {meant[0]}? " if meant else ""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    there = f"There are: {', '.join(names[:MOST])}{more}." if names else "There are none yet."
    return InvalidField(field, f"It is the name of a block. {slip}{there}", ErrorCode.NOT_FOUND)
