"""Ids of conversations, turns and messages. The same client id always leads to the same ids."""

import re

from trunkline_bus import key_of, new_id

_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


def conversation_id(channel: str, actor: str, block: str, client_id: str | None) -> str:
    """Return a new conversation's id. A client that sends its first message twice begins one conversation. Its block is
    part of the id: otherwise a repeat in a shared block would find the conversation of one that is shared no more.
    """
    return f"conv_{key_of(channel, actor, block, client_id)}" if client_id else new_id("conv")


def turn_id(conversation: str, client_id: str) -> str:
    """Return the id of a message's turn."""
    return f"turn_{key_of(conversation, client_id)}"


def message_id(turn: str, preceding: int | None = None) -> str:
    """Return the id of the message that a turn begins with, or of the preceding message with this number."""
    return f"msg_{key_of(turn, 'request', *(() if preceding is None else (str(preceding),)))}"


def is_id(text: str) -> bool:
    """Report whether a text can be an id. A text that cannot be an id names nothing."""
    return _KEY.fullmatch(text) is not None
