"""Objects: bytes of any size in the standard NATS object store layout, written and read through JetStream."""

import base64
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import BusError, DecodeError, StreamUnavailable
from trunkline_bus.ids import new_id
from trunkline_bus.streams.jetstream import last_record, publish_to_stream, records, subject_counts
from trunkline_bus.streams.jetstream_protocol import MSG_ID, STREAM_NOT_FOUND, StoredRecord
from trunkline_bus.streams.raw_stream import RawStream
from trunkline_bus.streams.retry import request_with_retry
from trunkline_bus.streams.specs import ObjectStoreSpec
from trunkline_bus.streams.topology import apply_spec

_CHUNK = 128 * 1024
_CLEARING = 5.0
_ROLLUP = {"Nats-Rollup": "sub"}


class ObjectInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The metadata of an object. The field names are those of NATS."""

    name: str
    bucket: str
    nuid: str
    size: int = 0
    chunks: int = 0
    digest: str = ""
    mtime: str = ""
    deleted: bool = False
    metadata: dict[str, str] = {}


class ObjectStore:
    """A bucket of objects. The standard ``nats object`` tools can read the bucket too."""

    def __init__(self, link: NatsConnection, spec: ObjectStoreSpec) -> None:
        self.spec = spec
        self._link = link
        self._ensured = False

    async def ensure(self) -> None:
        """Create the bucket if it does not exist. An existing bucket keeps its settings. Raises ``StreamError``
        kinds.
        """
        if not self._ensured:
            reply = await request_with_retry(self._link, f"STREAM.INFO.{self.spec.stream_name}")
            if "error" in reply:
                await apply_spec(self._link, self.spec.stream())
            self._ensured = True

    async def put(self, name: str, data: bytes) -> ObjectInfo:
        """Store ``data`` as ``name``, replacing an existing object. Raises ``StreamError``."""
        return await self._put(name, new_id(), _pieces_of(data), {})

    async def put_file(self, name: str, file: Path) -> ObjectInfo:
        """Store a file as ``name``, in pieces. Raises OSError and ``StreamError``."""
        return await self._put(name, new_id(), _pieces_in(file), {})

    async def put_pieces(
        self, name: str, pieces: AsyncIterable[bytes], *, metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Store the pieces, each of at most 128 KiB, as ``name``, with ``metadata``.

        The object exists under ``name`` only after all pieces are stored. Raises ``StreamError``; then the pieces
        stored so far are removed, which needs the permission to purge.
        """
        nuid = new_id()
        try:
            return await self._put(name, nuid, pieces, dict(metadata or {}))
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEARING), suppress(BusError):
                await self._purge(nuid)
            raise

    async def get(self, name: str) -> bytes | None:
        """Return the bytes of ``name``; None if there is no such object or its bytes do not match its digest."""
        info = await self.info(name)
        if info is None:
            return None
        data = b"".join([piece async for piece in self._chunks(info)])
        return data if _digest(hashlib.sha256(data)) == info.digest else None

    async def get_file(self, name: str, file: Path) -> bool:
        """Write the bytes of ``name`` to a new file, in pieces, and report whether they match the digest.

        If they do not match, or if there is no such object, no file is left. Raises OSError (including FileExistsError)
        and ``StreamError``.
        """
        info = await self.info(name)
        if info is None:
            return False
        digest, whole = hashlib.sha256(), False
        async with await anyio.open_file(file, "xb") as target:
            try:
                async for piece in self._chunks(info):
                    digest.update(piece)
                    await target.write(piece)
                whole = _digest(digest) == info.digest
            finally:
                if not whole:
                    await anyio.Path(file).unlink(missing_ok=True)
        return whole

    async def pieces(self, info: ObjectInfo) -> AsyncIterator[bytes]:
        """Yield the bytes of an object, in pieces and in order.

        Raises ``DecodeError("object_broken")`` if a piece is missing, and ``StreamError``.
        """
        count = 0
        async for record in self._records(info):
            if record.headers.get(MSG_ID) != f"{info.nuid}-{count}":
                break
            yield record.data
            count += 1
        if count < info.chunks:
            raise DecodeError("object_broken", f"piece {count} of the object {info.name[:100]!r} is missing")

    async def info(self, name: str) -> ObjectInfo | None:
        """Return the metadata of ``name``; None if the object does not exist or was deleted, or if the bucket does not
        exist.
        """
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
        """Delete ``name``. If there is no such object, nothing happens."""
        info = await self.info(name)
        if info is None:
            return
        gone = msgspec.structs.replace(info, deleted=True, size=0, chunks=0, digest="")
        await self._store(self._meta(name), msgspec.json.encode(gone), {MSG_ID: new_id(), **_ROLLUP})
        await self._purge(info.nuid)

    async def erase(self, name: str) -> bool:
        """Overwrite ``name`` on the server's disk and delete it. Report whether the object existed. Raises
        ``StreamError``.
        """
        info = await self.info(name)
        if info is not None:
            await self._erase_subject(f"$O.{self.spec.name}.C.{info.nuid}")
        await self._erase_subject(self._meta(name))
        return info is not None

    async def fragments(self) -> list[ObjectInfo]:
        """Return what is stored of objects that do not exist, because their ``put`` is running or was interrupted.

        A fragment has no name and no size; ``mtime`` is the time of its last piece. Raises ``StreamError``.
        """
        counts = await subject_counts(self._link, self.spec.stream_name, f"$O.{self.spec.name}.C.*")
        whole = {info.nuid for info in await self.infos()}
        found: list[ObjectInfo] = []
        for subject, count in counts.items():
            nuid = subject.rpartition(".")[2]
            last = None if nuid in whole else await last_record(self._link, self.spec.stream_name, subject)
            if last is not None:
                at = last.time.isoformat()
                found.append(ObjectInfo(name="", bucket=self.spec.name, nuid=nuid, chunks=count, mtime=at))
        return found

    async def erase_fragment(self, fragment: ObjectInfo) -> None:
        """Overwrite a fragment on the server's disk and delete it. Raises ``StreamError``."""
        await self._erase_subject(f"$O.{self.spec.name}.C.{fragment.nuid}")

    async def infos(self) -> list[ObjectInfo]:
        """Return the metadata of all objects of the bucket, in the order in which they were stored."""
        found: list[ObjectInfo] = []
        async for record in records(self._link, self.spec.stream_name, f"$O.{self.spec.name}.M.*"):
            info = msgspec.json.decode(record.data, type=ObjectInfo)
            if not info.deleted:
                found.append(info)
        return found

    async def names(self) -> list[str]:
        """Return the names of all objects of the bucket."""
        return [info.name for info in await self.infos()]

    async def _put(
        self, name: str, nuid: str, pieces: AsyncIterable[bytes], metadata: dict[str, str]
    ) -> ObjectInfo:
        previous = await self.info(name)
        digest, size, count = hashlib.sha256(), 0, 0
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
            metadata=metadata,
        )
        await self._store(self._meta(name), msgspec.json.encode(info), {MSG_ID: nuid, **_ROLLUP})
        if previous is not None:
            await self._purge(previous.nuid)
        return info

    async def _erase_subject(self, subject: str) -> None:
        stream = RawStream(self._link, self.spec.stream_name)
        async for record in stream.records(subject):
            await stream.erase(record.seq)

    async def _chunks(self, info: ObjectInfo) -> AsyncIterator[bytes]:
        async for record in self._records(info):
            yield record.data

    def _records(self, info: ObjectInfo) -> AsyncIterator[StoredRecord]:
        return records(self._link, self.spec.stream_name, f"$O.{self.spec.name}.C.{info.nuid}")

    async def _store(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        await publish_to_stream(self._link, self.spec.stream_name, subject, data, headers, 10.0)

    async def _purge(self, nuid: str) -> None:
        body: dict[str, Any] = {"filter": f"$O.{self.spec.name}.C.{nuid}"}
        await request_with_retry(self._link, f"STREAM.PURGE.{self.spec.stream_name}", body)

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
