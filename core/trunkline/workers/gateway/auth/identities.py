"""The identities: files of memory that only the owner changes."""

import re
from datetime import UTC, datetime

import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.identity import (
    IDENTITY_ID,
    LONGEST_NAME,
    RESERVED_IDS,
    IdentityRecord,
    decode_identity,
    identity_path,
)
from trunkline.contracts.auth.messages import ChangeIdentity, CreateIdentity
from trunkline.contracts.memory.files import MemoryFile, ReadManyMemory, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_READ_MANY, MEMORY_WRITE_MANY
from trunkline.errors import ErrorCode
from trunkline.runtime.auth.identity_files import read_identities
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, RemoteFault

MEMORY_TIMEOUT = 10.0

BUILT_IN_OWNER = IdentityRecord(
    id=OWNER, type="owner", display_name="Owner", status="active", created=datetime.fromtimestamp(0, UTC)
)
"""The owner, who needs no file and cannot be locked out."""


class IdentityService:
    """Lists, creates and changes identities.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, audit: AuthAudit) -> None:
        self._bus = bus
        self._audit = audit

    async def list_identities(self) -> tuple[IdentityRecord, ...]:
        """Return all identities, the owner first."""
        others = await read_identities(self._bus)
        return (BUILT_IN_OWNER, *(others[id] for id in sorted(others)))

    async def get(self, id: str) -> IdentityRecord:
        """Return an identity. Refused with ``not_found``."""
        return BUILT_IN_OWNER if id == OWNER else (await self._find(id))[0]

    async def create(self, request: CreateIdentity) -> IdentityRecord:
        """Create an identity. Refused with ``conflict`` if its file exists, and with ``invalid_request`` for an id or
        a type that only the owner has.
        """
        if request.identity_type == OWNER:
            raise InvalidField(
                ("type",), "There is one owner. Choose another type, collaborator for instance."
            )
        _check_names(request)
        record = IdentityRecord(
            id=request.id,
            type=request.identity_type,
            display_name=request.display_name or request.id,
            status="active",
            created=datetime.now(UTC),
        )
        try:
            await self._write(record, "", request.actor, f"new identity {record.id}")
        except RemoteFault as fault:
            if fault.code != "write_conflict":
                raise
            raise refusal(ErrorCode.CONFLICT, f"There is an identity {record.id!r} already.") from fault
        why = f"The {record.type} {record.id} was added."
        await self._audit.record("identity_created", request.actor, why)
        return record

    async def change(self, request: ChangeIdentity) -> IdentityRecord:
        """Change the status or the name of an identity. Refused with ``not_found``, and with ``conflict`` for the owner
        and for an identity that was revoked: a revoked identity never comes back, so that its old grants cannot either.
        """
        if request.id == OWNER:
            raise refusal(ErrorCode.CONFLICT, "The owner is built in, and always active.")
        _check_display_name(request.display_name or "")
        old, file = await self._find(request.id)
        new = msgspec.structs.replace(
            old,
            status=request.status or old.status,
            display_name=request.display_name or old.display_name,
        )
        if new == old:
            return old
        if old.status == "revoked":
            raise refusal(
                ErrorCode.CONFLICT, f"{old.id!r} was revoked, which is final. Create another identity."
            )
        await self._write(new, file.hash, request.actor, f"identity {new.id}: {new.status}")
        was = f"{old.status}, {old.display_name!r}"
        why = f"{new.id} is {new.status}, {new.display_name!r}; before, it was {was}."
        await self._audit.record("identity_changed", request.actor, why)
        return new

    async def _find(self, id: str) -> tuple[IdentityRecord, MemoryFile]:
        missing = refusal(
            ErrorCode.NOT_FOUND,
            f"There is no identity {id[:80]!r}. trunkline auth list shows them, trunkline auth create adds one.",
        )
        if re.fullmatch(IDENTITY_ID, id) is None:  # it can have no file
            raise missing
        request = ReadManyMemory(paths=(identity_path(id),))
        reply = await self._bus.call(MEMORY_READ_MANY, request, timeout=MEMORY_TIMEOUT, repeatable=True)
        for file in reply.files:
            try:
                return decode_identity(file.path, file.content), file
            except ValueError as error:
                sentence = f"{file.path} in memory is not an identity: {error}. Repair or delete it."
                raise refusal(ErrorCode.CONFLICT, sentence) from error
        raise missing

    async def _write(self, record: IdentityRecord, expected: str, actor: str, reason: str) -> None:
        path = identity_path(record.id)
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
        request = WriteManyMemory(files={path: text}, expected={path: expected}, actor=actor, reason=reason)
        await self._bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)


def _check_names(request: CreateIdentity) -> None:
    if request.id in RESERVED_IDS:
        raise InvalidField(("id",), f"{request.id!r} means something else. Choose another id.")
    if re.fullmatch(IDENTITY_ID, request.id) is None:
        raise InvalidField(
            ("id",),
            "An id has 1 to 64 characters of a-z, 0-9, . _ and -, and begins with a letter or a digit.",
        )
    _check_display_name(request.display_name)


def _check_display_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise InvalidField(("display_name",), f"It must have at most {LONGEST_NAME} characters.")
