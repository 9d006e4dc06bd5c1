"""Objects: bytes of any size in the standard NATS object store layout, written and read through JetStream."""

import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trunkline_bus.errors import StreamUnavailable
from trunkline_bus.ids import new_id
from trunkline_bus.jetstream import last_record, records, store
from trunkline_bus.jsapi import MSG_ID, STREAM_NOT_FOUND
from trunkline_bus.link import Link
from trunkline_bus.persistence import ask
from trunkline_bus.specs import ObjectStoreSpec
from trunkline_bus.topology import apply_one

_CHUNK = 128 * 1024
_ROLLUP = {"Nats-Rollup": "sub"}


class ObjectInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bucket knows of an object; the field names are those of NATS."""

    name: str
    bucket: str
    nuid: str
    size: int = 0
    chunks: int = 0
    digest: str = ""
    mtime: str = ""
    deleted: bool = False


class ObjectStore:
    """One bucket of objects. The stock ``nats object`` tools read the same bucket."""

    def __init__(self, link: Link, spec: ObjectStoreSpec) -> None:
        self.spec = spec
        self._link = link
        self._ensured = False

    async def ensure(self) -> None:
        """Create the bucket when it is missing; one that is there keeps its settings. Raises ``StreamError`` kinds."""
        if not self._ensured:
            reply = await ask(self._link, f"STREAM.INFO.{self.spec.stream_name}")
            if "error" in reply:
                await apply_one(self._link, self.spec.stream())
            self._ensured = True

    async def put(self, name: str, data: bytes) -> ObjectInfo:
        """Store ``data`` under ``name``, replacing what was there. Raises ``StreamError`` kinds."""
        return await self._put(name, _pieces_of(data))

    async def put_file(self, name: str, file: Path) -> ObjectInfo:
        """Store a file's bytes under ``name``, a piece at a time. Raises OSError and ``StreamError`` kinds."""
        return await self._put(name, _pieces_in(file))

    async def get(self, name: str) -> bytes | None:
        """The bytes of ``name``; None when there is no such object or its bytes do not match its digest."""
        info = await self.info(name)
        if info is None:
            return None
        data = b"".join([piece async for piece in self._pieces(info)])
        return data if _digest(hashlib.sha256(data)) == info.digest else None

    async def get_file(self, name: str, file: Path) -> bool:
        """Write the bytes of ``name`` to a new file, a piece at a time, and say whether they are whole.

        When they are not, or there is no such object, there is no file. Raises OSError (FileExistsError, too) and
        ``StreamError`` kinds.
        """
        info = await self.info(name)
        if info is None:
            return False
        digest, whole = hashlib.sha256(), False
        async with await anyio.open_file(file, "xb") as target:
            try:
                async for piece in self._pieces(info):
                    digest.update(piece)
                    await target.write(piece)
                whole = _digest(digest) == info.digest
            finally:
                if not whole:
                    await anyio.Path(file).unlink(missing_ok=True)
        return whole

    async def info(self, name: str) -> ObjectInfo | None:
        """What is known of ``name``; None when it does not exist, was deleted, or the bucket is missing."""
        try:
            record = await last_record(self._link, self.spec.stream_name, self._meta(name))
        except StreamUnavailable as error:
            if error.code == STREAM_NOT_FOUND:
                return None
            raise
        if record is None:
            return None
        info = msgspec.json.decode(record.data, type=ObjectInfo)
        return None if info.deleted else info

    async def delete(self, name: str) -> None:
        """Remove ``name``; nothing happens when it is not there."""
        info = await self.info(name)
        if info is None:
            return
        gone = msgspec.structs.replace(info, deleted=True, size=0, chunks=0, digest="")
        await self._store(self._meta(name), msgspec.json.encode(gone), {MSG_ID: new_id(), **_ROLLUP})
        await self._purge(info.nuid)

    async def names(self) -> list[str]:
        """The names of all objects in the bucket."""
        found: list[str] = []
        async for record in records(self._link, self.spec.stream_name, f"$O.{self.spec.name}.M.*"):
            info = msgspec.json.decode(record.data, type=ObjectInfo)
            if not info.deleted:
                found.append(info.name)
        return found

    async def _put(self, name: str, pieces: AsyncIterator[bytes]) -> ObjectInfo:
        previous = await self.info(name)
        nuid, digest, size, count = new_id(), hashlib.sha256(), 0, 0
        async for piece in pieces:
            digest.update(piece)
            await self._store(f"$O.{self.spec.name}.C.{nuid}", piece, {MSG_ID: f"{nuid}-{count}"})
            size, count = size + len(piece), count + 1
        info = ObjectInfo(
            name=name,
            bucket=self.spec.name,
            nuid=nuid,
            size=size,
            chunks=count,
            digest=_digest(digest),
            mtime=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )
        await self._store(self._meta(name), msgspec.json.encode(info), {MSG_ID: nuid, **_ROLLUP})
        if previous is not None:
            await self._purge(previous.nuid)
        return info

    async def _pieces(self, info: ObjectInfo) -> AsyncIterator[bytes]:
        subject = f"$O.{self.spec.name}.C.{info.nuid}"
        async for record in records(self._link, self.spec.stream_name, subject):
            yield record.data

    async def _store(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        await store(self._link, self.spec.stream_name, subject, data, headers, 10.0)

    async def _purge(self, nuid: str) -> None:
        body: dict[str, Any] = {"filter": f"$O.{self.spec.name}.C.{nuid}"}
        await ask(self._link, f"STREAM.PURGE.{self.spec.stream_name}", body)

    def _meta(self, name: str) -> str:
        return f"$O.{self.spec.name}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


async def _pieces_of(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _CHUNK):
        yield data[start : start + _CHUNK]


async def _pieces_in(file: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(file, "rb") as source:
        while piece := await source.read(_CHUNK):
            yield piece


def _digest(hash: "hashlib._Hash") -> str:
    return "SHA-256=" + base64.urlsafe_b64encode(hash.digest()).decode()
