"""The file service: files that clients upload once and name in messages by their ids.

Uploads are working material on the bus, with an expiry; a message that names one gets its own copy in memory
(ADR 67). A file belongs to the identity that uploaded it. To any other identity it does not exist, and neither does it
to a token of the same identity that reaches other blocks only.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal, get_args

import msgspec

from trunkline.contracts.conversations.messages import DocumentFile
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.subjects import FILE_STORE
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.attachment_types import media_type_of
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, ObjectInfo, StorageFull, key_of, new_id

Purpose = Literal["user_data", "vision", "assistants", "batch", "fine-tune", "evals"]
PURPOSES: tuple[str, ...] = get_args(Purpose)

MAX_NAME_CHARS = 200


class UploadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file. ``created_at`` and ``expires_at`` are in Unix seconds; ``size`` is in bytes."""

    id: str
    name: str
    purpose: str
    size: int
    created_at: int
    expires_at: int


class FileService:
    """Stores uploaded files for their owners. ``max_size`` is in bytes, ``lifetime`` in seconds.

    Methods raise Refusal with ``not_found`` for a file that does not exist, has expired or belongs to another identity,
    and BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus, *, max_size: int, lifetime: float) -> None:
        self._objects = bus.objects(FILE_STORE)
        self.max_size = max_size
        self.lifetime = int(lifetime)

    async def add(
        self, pieces: AsyncIterator[bytes], owner: Identity, *, name: str, purpose: str, lifetime: int | None
    ) -> UploadedFile:
        """Store a file, in pieces of at most 128 KiB. Refused with ``storage_failure`` while the store is full."""
        id, now = new_id("file"), int(datetime.now(UTC).timestamp())
        metadata = {
            "owner": _key_of(owner),
            "name": safe_name(name),
            "purpose": purpose,
            "created_at": str(now),
            "expires_at": str(now + min(lifetime or self.lifetime, self.lifetime)),
        }
        try:
            return _uploaded(await self._objects.put_pieces(id, pieces, metadata=metadata))
        except StorageFull as error:
            raise refusal(ErrorCode.STORAGE_FAILURE) from error

    async def get(self, id: str, owner: Identity) -> UploadedFile:
        """Return a file."""
        return _uploaded(await self._find(id, owner))

    async def list_files(self, owner: Identity) -> list[UploadedFile]:
        """Return the owner's files, oldest first."""
        infos = [info for info in await self._objects.infos() if _is_of(info, owner)]
        return [_uploaded(info) for info in infos if not _is_expired(info)]

    async def pieces(self, id: str, owner: Identity) -> AsyncIterator[bytes]:
        """Yield the content of a file. Raises DecodeError when a part of it is missing."""
        async for piece in self._objects.pieces(await self._find(id, owner)):
            yield piece

    async def delete(self, id: str, owner: Identity) -> None:
        """Delete a file. Messages that named it keep their copies."""
        await self._objects.delete((await self._find(id, owner)).name)

    async def load(self, id: str, owner: Identity) -> DocumentFile | None:
        """Return a file for a message, with the type that its content has; None when there is no such file."""
        try:
            info = await self._find(id, owner)
        except InvalidField:
            return None
        data = await self._objects.get(info.name)
        if data is None:
            return None
        return DocumentFile(media_type=media_type_of(data) or "", name=info.metadata["name"], data=data)

    async def _find(self, id: str, owner: Identity) -> ObjectInfo:
        info = await self._objects.info(id) if id.isascii() and len(id) <= 64 else None
        if info is None or not _is_of(info, owner):
            raise _not_found()
        if _is_expired(info):
            await self._objects.delete(info.name)
            raise _not_found()
        return info


def safe_name(name: str) -> str:
    """Return the name of a file without folders, control characters and quotes."""
    plain = "".join(letter for letter in name if letter.isprintable() and letter != '"')
    return plain.replace("\\", "/").rpartition("/")[2].strip(". ")[-MAX_NAME_CHARS:] or "file"


def _not_found() -> InvalidField:
    return InvalidField("id", "There is no file with this id.", ErrorCode.NOT_FOUND)


def _is_of(info: ObjectInfo, owner: Identity) -> bool:
    return info.metadata.get("owner") == _key_of(owner)


def _key_of(owner: Identity) -> str:
    """Return what stands for the owner of a file. Files belong to no block, so a token for some blocks has files of its
    own.
    """
    return owner.id if owner.blocks is None else key_of(owner.id, *sorted(owner.blocks))


def _is_expired(info: ObjectInfo) -> bool:
    return int(info.metadata.get("expires_at", 0)) <= datetime.now(UTC).timestamp()


def _uploaded(info: ObjectInfo) -> UploadedFile:
    return UploadedFile(
        id=info.name,
        name=info.metadata["name"],
        purpose=info.metadata["purpose"],
        size=info.size,
        created_at=int(info.metadata["created_at"]),
        expires_at=int(info.metadata["expires_at"]),
    )
