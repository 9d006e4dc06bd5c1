"""The paths of conversations in memory: ``blocks/<block>/conversations/``, in folders by the last letter of the id
(ADR 15), and of their attachments, in a folder beside the conversation (ADR 67). Rules on text only.
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
_ATTACHMENT = re.compile(
    rf"(?:{BLOCKS_FOLDER}|archive)/[^/]+/conversations/(?:[a-z0-9_]/)?({_CONVERSATION.pattern})\.files/[^/]+"
)
_UNSAFE = re.compile(r"[^\w.-]+")
_CONVERSATION_ID = re.compile(r"conv_[A-Za-z0-9_-]{1,59}")


def conversation_paths(block: str, conversation: str) -> tuple[str, str]:
    """Return the two paths at which a conversation may be stored: in the folder of its id's last letter, and, for a
    conversation older than these folders, directly in ``conversations``.

    Raise Refusal ``invalid_path`` for an invalid block name or conversation id.
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
    """Return the block and conversation of a path; None if the path is not a conversation's."""
    found = _PATH.fullmatch(path)
    return (found[1], found[2]) if found else None


def conversation_of(path: str) -> str | None:
    """Return the conversation whose file a path names, in a block or in an archived block; None if the path names no
    conversation's file.
    """
    found = _ANY_PATH.fullmatch(path)
    return found[1] if found else None


def attachment_path(block: str, conversation: str, digest: str, name: str) -> str:
    """Return the path of an attachment. ``digest`` identifies its content; ``name`` is its name for people, of which
    the path keeps letters, digits, ``_``, ``-`` and ``.``. Raise Refusal ``invalid_path`` as ``conversation_paths``
    does.
    """
    folder = conversation_paths(block, conversation)[0].removesuffix(".jsonl")
    safe = _UNSAFE.sub("-", name).strip("-.")[-60:].lstrip("-.")
    return f"{folder}.files/{digest[:12]}-{safe or 'file'}"


def conversation_of_attachment(path: str) -> str | None:
    """Return the conversation of an attachment, in a block or in an archived block; None if the path names no
    attachment.
    """
    found = _ATTACHMENT.fullmatch(path)
    return found[1] if found else None


def parse_conversation_id(text: str) -> str | None:
    """Return the conversation id that a text is; None if it is not one."""
    return text if _CONVERSATION_ID.fullmatch(text) else None
