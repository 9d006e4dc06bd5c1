"""Where conversations lie in memory: ``blocks/<block>/conversations/``, in folders by the last letter of their id
(ADR 15). Rules on text only.
"""

import re

from trunkline.contracts.blocks.paths import BLOCK_NAME, BLOCKS_FOLDER, block_folder, is_block_name
from trunkline_bus import Refusal

_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PATH = re.compile(
    rf"{BLOCKS_FOLDER}/({BLOCK_NAME})/conversations/(?:[a-z0-9_]/)?({_CONVERSATION.pattern})\.jsonl"
)
_ANY_PATH = re.compile(
    rf"(?:{BLOCKS_FOLDER}|archive)/[^/]+/conversations/(?:[a-z0-9_]/)?({_CONVERSATION.pattern})\.jsonl"
)
_CONVERSATION_ID = re.compile(r"conv_[A-Za-z0-9_-]{1,59}")


def conversation_paths(block: str, conversation: str) -> tuple[str, str]:
    """Where a conversation lies: beside those with the same last letter; if it began before there were such folders,
    beside all others.

    Raises Refusal ``invalid_path`` for names that no block or conversation has.
    """
    if not is_block_name(block):
        raise Refusal("invalid_path", f"{block[:80]!r} is not a block's name.")
    if not _CONVERSATION.fullmatch(conversation):
        raise Refusal("invalid_path", f"{conversation[:80]!r} is not a conversation's id.")
    folder, last = f"{block_folder(block)}/conversations", conversation[-1].lower()
    return (
        f"{folder}/{last if last.isalnum() else '_'}/{conversation}.jsonl",
        f"{folder}/{conversation}.jsonl",
    )


def parse_conversation_path(path: str) -> tuple[str, str] | None:
    """Return the block and conversation of a path; None when it is no conversation's."""
    found = _PATH.fullmatch(path)
    return (found[1], found[2]) if found else None


def conversation_of(path: str) -> str | None:
    """Return the conversation whose file a path names, in a block or in an archived one; None when it is none's."""
    found = _ANY_PATH.fullmatch(path)
    return found[1] if found else None


def parse_conversation_id(text: str) -> str | None:
    """Return the conversation that a text names by its id; None when it names something else."""
    return text if _CONVERSATION_ID.fullmatch(text) else None
