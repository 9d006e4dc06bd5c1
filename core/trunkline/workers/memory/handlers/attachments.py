"""The endpoints of attachments."""

import hashlib

from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.conversations.paths import attachment_path, conversation_of_attachment
from trunkline.contracts.memory.attachments import (
    MEMORY_READ_ATTACHMENT,
    MEMORY_STORE_ATTACHMENTS,
    PIECE_BYTES,
    AttachmentPiece,
    AttachmentsStored,
    NewAttachment,
    ReadAttachment,
    StoreAttachments,
)
from trunkline.contracts.memory.store import Change, MemoryStore
from trunkline.contracts.workers.subjects import IMPORT_STORE
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline_bus import Bus, Refusal, Request, Scope


class AttachmentHandlers:
    """Answers requests from a store. Files arrive in the object store, because they are larger than messages; they are
    read back in pieces, because the object store would keep each copy for days."""

    def __init__(self, store: MemoryStore, bus: Bus) -> None:
        self._store = store
        self._objects = bus.objects(IMPORT_STORE)
        self._last_read: tuple[str, bytes] = ("", b"")

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_STORE_ATTACHMENTS, self._add)
        await endpoints.add(MEMORY_READ_ATTACHMENT, self._read)

    async def _add(self, request: Request[StoreAttachments]) -> AttachmentsStored:
        command = request.data
        contents = [await self._content(file) for file in command.files]
        stored = tuple(map(_attachment, (command,) * len(contents), command.files, contents))
        count = f"{len(stored)} {'attachment' if len(stored) == 1 else 'attachments'}"
        await self._store.change(
            Change(
                {one.path: data for one, data in zip(stored, contents, strict=True)},
                actor=command.actor,
                reason=f"Conversation {command.conversation}: {count}",
                scope=Scope(block=command.block, conversation=command.conversation),
            )
        )
        for file in command.files:
            await self._objects.delete(file.object)
        return AttachmentsStored(attachments=stored)

    async def _content(self, file: NewAttachment) -> bytes:
        data = await self._objects.get(file.object)
        if data is None:
            raise Refusal("not_found", f"The file {file.name[:80]!r} did not arrive. Send it again.")
        return data

    async def _read(self, request: Request[ReadAttachment]) -> AttachmentPiece:
        path, offset = request.data.path, max(0, request.data.offset)
        if conversation_of_attachment(path) is None:
            raise Refusal("invalid_path", f"{path[:80]!r} is not the path of an attachment.")
        known, data = self._last_read
        if known != path or offset == 0:
            data = await self._store.read_bytes(path)
            self._last_read = (path, data)
        return AttachmentPiece(data=data[offset : offset + PIECE_BYTES], size=len(data))


def _attachment(command: StoreAttachments, file: NewAttachment, data: bytes) -> Attachment:
    digest = hashlib.sha256(data).hexdigest()
    path = attachment_path(command.block, command.conversation, digest, file.name)
    return Attachment(path=path, name=file.name, media_type=file.media_type, size=len(data))
