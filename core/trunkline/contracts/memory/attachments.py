"""The operations on attachments: the files of messages, stored beside their conversation."""

from typing import Annotated

import msgspec

from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload


class NewAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file to store. ``name`` is its name for people; ``media_type`` is the type of its content. ``object`` is the
    object of ``IMPORT_STORE`` that holds it; memory deletes the object when the file is committed.
    """

    name: str
    media_type: str
    object: str


class StoreAttachments(Payload, frozen=True, kw_only=True, tag="memory.store-attachments.v1"):
    """Store the files of a conversation's messages in one commit. A file that is stored already is not stored again, so
    repeating the request changes nothing.
    """

    block: str
    conversation: str
    actor: str
    files: Annotated[tuple[NewAttachment, ...], msgspec.Meta(min_length=1)]


class AttachmentsStored(Payload, frozen=True, kw_only=True, tag="memory.attachments-stored.v1"):
    """The files are committed. ``attachments`` are in the order of the files."""

    attachments: tuple[Attachment, ...]


PIECE_BYTES = 90_000
"""The largest piece of an attachment in a reply. As base64 it is smaller than the largest message of the bus."""


class ReadAttachment(Payload, frozen=True, kw_only=True, tag="memory.read-attachment.v1"):
    """Read ``PIECE_BYTES`` bytes of an attachment from ``offset`` on. ``path`` is the path of an attachment; no other
    file can be read so.
    """

    path: str
    offset: int = 0


class AttachmentPiece(Payload, frozen=True, kw_only=True, tag="memory.attachment.v1"):
    """A piece of an attachment, and the size of the whole file in bytes."""

    data: bytes
    size: int


MEMORY_STORE_ATTACHMENTS = change(
    "attachments-store",
    StoreAttachments,
    AttachmentsStored,
    "Store the files of messages.",
    ("gateway", "tools"),
)
MEMORY_READ_ATTACHMENT = query(
    "attachment-read",
    ReadAttachment,
    AttachmentPiece,
    "A file of a message.",
    ("monitor", "gateway"),
    concurrency=8,
)
