"""The HTTP error for a block that does not exist for the sender. It lists the blocks that the sender may read."""

from trunkline.config.problems import closest_matches
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.sender import Sender

MAX_NAMED = 20
"""The number of blocks that the error names."""


async def unknown_block_error(
    blocks: BlockService,
    sender: Sender,
    name: str,
    field: tuple[str, ...] | str,
    *,
    named: str | None = None,
) -> InvalidField:
    """Return the refusal of a request whose ``field`` names a block that does not exist. ``named`` is OpenAI's code."""
    names = [block.name for block in (await blocks.list_blocks(sender)).blocks]
    similar = closest_matches(name, names)
    suggestion = f"Did you mean {similar[0]}? " if similar else ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    available = (
        f"Existing blocks: {', '.join(names[:MAX_NAMED])}{more}." if names else "No block is open to you yet."
    )
    wrong = "No block has this name." if name else "Name a block."
    reason = f"{wrong} {suggestion}{available}"
    return InvalidField(field, reason, ErrorCode.NOT_FOUND, named=named)
