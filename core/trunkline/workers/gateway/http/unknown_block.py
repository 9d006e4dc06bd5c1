"""The HTTP error for a block that does not exist. It lists the existing blocks, which every credential may
list."""

from trunkline.config.problems import closest_matches
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.errors import InvalidField

MAX_NAMED = 20
"""The number of blocks that the error names."""


async def unknown_block_error(
    blocks: BlockService, name: str, field: tuple[str, ...] | str, *, named: str | None = None
) -> InvalidField:
    """Return the refusal of a request whose ``field`` names a block that does not exist. ``named`` is OpenAI's code."""
    names = [block.name for block in (await blocks.list_blocks()).blocks]
    similar = closest_matches(name, names)
    suggestion = f"Did you mean {similar[0]}? " if similar else ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    available = f"Existing blocks: {', '.join(names[:MAX_NAMED])}{more}." if names else "No block exists yet."
    reason = f"No block has this name. {suggestion}{available}"
    return InvalidField(field, reason, ErrorCode.NOT_FOUND, named=named)
