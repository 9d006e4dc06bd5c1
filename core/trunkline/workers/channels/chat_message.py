"""A message of the owner in a chat, as a channel hands it to its session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trunkline.workers.channels.incoming_files import IncomingFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of the owner. ``id`` is the same whenever the service delivers it again, and never that of another
    message. ``chat`` is the key of the chat or thread in ``Chats``; ``place`` and ``details`` are where the answer is
    shown. ``command`` is the name of a command, and ``text`` what follows it. A message with ``reply`` is answered
    with this text, and reaches no agent. ``files`` returns the files of the message: it is called when they are needed,
    and again after Unavailable. The sentence of a FileRefused that it raises answers the message.
    """

    id: str
    chat: str
    place: str
    text: str
    command: str = ""
    reply: str = ""
    files: Callable[[], Awaitable[Sequence[IncomingFile]]] | None = None
    details: Mapping[str, str] = field(default_factory=dict)
