"""The account of a chat channel, as the parts of the channel know it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAccount:
    """The account of a channel at its service. ``owners`` are the places of the owner's private chats by the settings,
    besides those of linked senders; ``unreached`` says why none of them may accept a text. ``block`` is the block of a
    new conversation. ``edit_seconds`` is the time between two edits of an answer that grows. ``before`` precedes the
    words of a command.
    """

    channel: str
    id: str
    owners: Sequence[str]
    unreached: str
    block: str | None = None
    edit_seconds: float = 1.5
    before: str = "/"
