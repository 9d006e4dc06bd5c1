"""The passkeys: registers, lists and removes them, and checks who signs in with one."""

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio
import msgspec

from trunkline.contracts.auth.passkey_verifier import NewPasskey, PasskeyCeremony, PasskeyVerifier
from trunkline.contracts.auth.passkeys import MOST_PASSKEYS, PasskeyRecord, passkey_id
from trunkline.contracts.auth.subjects import PASSKEY_BUCKET
from trunkline.errors import ErrorCode
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, Refusal, SequenceConflict

log = logging.getLogger(__name__)

T = TypeVar("T")

Response = Mapping[str, Any]
"""What a browser says after ``navigator.credentials.create`` or ``get``, as JSON."""


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """A passkey as it is in the bucket at a revision."""

    record: PasskeyRecord
    revision: int


class PasskeyService:
    """Keeps the passkeys, and checks responses with the verifier of a plugin.

    Guarantees: a passkey that was changed in the bucket without the key of the home does not count. A counter that does
    not grow is refused. Whoever is refused does not learn why.

    Methods raise Refusal with a fixed code, BusError when the bus does not answer, and StorageError when the key cannot
    be read.
    """

    def __init__(self, bus: Bus, key: TokenKey, audit: AuthAudit, verifier: PasskeyVerifier | None) -> None:
        self._bucket = bus.kv(PASSKEY_BUCKET)
        self._key = key
        self._audit = audit
        self._verifier = verifier

    @property
    def verifier(self) -> PasskeyVerifier:
        """The verifier. Refused if no plugin has one."""
        if self._verifier is None:
            raise InvalidField((), "No plugin checks passkeys here. Install trunkline-passkeys.")
        return self._verifier

    def user_handle(self, identity: str) -> bytes:
        """Return the handle under which authenticators keep an identity. It says nothing about the identity."""
        return bytes.fromhex(self._key.require_mac(f"passkey user {identity}"))

    async def records(self, identity: str | None = None) -> list[PasskeyRecord]:
        """Return the passkeys that count, the oldest first; with ``identity`` only its own."""
        found = [entry.value for entry in await self._bucket.entries() if entry.value is not None]
        valid = [one for one in found if identity in (None, one.identity) and self._is_own(one)]
        return sorted(valid, key=lambda one: (one.created, one.id))

    async def find(self, id: str) -> PasskeyRecord:
        """Return a passkey. Refused with ``not_found``."""
        for record in await self.records():
            if record.id == id:
                return record
        raise refusal(
            ErrorCode.NOT_FOUND, f"There is no passkey {id!r}. trunkline auth passkeys list shows them."
        )

    async def register(
        self, response: Response, ceremony: PasskeyCeremony, draft: PasskeyRecord
    ) -> PasskeyRecord:
        """Store the passkey of a response. ``draft`` has everything about it besides the key. Refused with
        ``invalid_request`` if the response is not valid, and with ``conflict`` if the passkey exists or its identity
        has too many.
        """
        made = await self._checked(lambda: self.verifier.check_registration(response, ceremony))
        if made is None:
            raise await self.invalid("A new passkey was not valid.")
        if len(await self.records(draft.identity)) >= MOST_PASSKEYS:
            raise refusal(
                ErrorCode.CONFLICT, f"There are {MOST_PASSKEYS} passkeys already. Remove one first."
            )
        fields = msgspec.structs.asdict(made)
        record = self._sealed(msgspec.structs.replace(draft, id=passkey_id(made.credential), **fields))
        try:
            await self._bucket.create(record.id, record)
        except SequenceConflict as error:
            raise refusal(ErrorCode.CONFLICT, "This passkey is registered already.") from error
        why = (
            f"{record.id} of {record.identity} with the scope {record.scope}, in the session {record.token}."
        )
        await self._audit.record("passkey_added", record.identity, why)
        return record

    async def named_by(self, response: Response, host: str) -> StoredPasskey:
        """Return the passkey that a response names. Refused with ``unauthorized`` if it is not known at this host."""
        entry = await self._bucket.get(passkey_id(_credential(response)))
        if entry is None or entry.value is None or entry.value.host != host or not self._is_own(entry.value):
            raise await self.refused("A passkey is not known here.")
        return StoredPasskey(entry.value, entry.revision)

    async def count_use(
        self, response: Response, ceremony: PasskeyCeremony, stored: StoredPasskey
    ) -> PasskeyRecord:
        """Return a passkey after its use was checked and counted. Refused with ``unauthorized``, and with ``conflict``
        if the passkey is used or removed in this moment.
        """
        old = stored.record
        known = NewPasskey(credential=old.credential, public_key=old.public_key, counter=old.counter)
        counter = await self._checked(lambda: self.verifier.check_sign_in(response, ceremony, known))
        if counter is None:
            raise await self.refused(f"{old.id} of {old.identity}: a response was not valid.")
        if counter <= old.counter and (counter or old.counter):
            why = f"its counter went from {old.counter} to {counter}, so there may be a copy of it."
            raise await self.refused(f"{old.id} of {old.identity}: {why}")
        used = self._sealed(msgspec.structs.replace(old, counter=counter, used=datetime.now(UTC)))
        try:
            await self._bucket.update(used.id, used, stored.revision)
        except SequenceConflict as error:
            raise refusal(ErrorCode.CONFLICT) from error
        return used

    async def exists(self, id: str) -> bool:
        """Report whether a passkey has not been removed, as the leader of the bucket knows it."""
        return await self._bucket.get(id) is not None

    async def remove(self, records: Iterable[PasskeyRecord], actor: str) -> None:
        """Remove passkeys. Their sessions are not ended here (``AuthService.remove_passkeys``)."""
        for record in records:
            await self._bucket.delete(record.id)
            await self._audit.record("passkey_removed", actor, f"{record.id} of {record.identity}.")

    async def note_sign_in(self, record: PasskeyRecord, session: str) -> None:
        """Record that a passkey opened a session."""
        await self._audit.record(
            "signed_in", record.identity, f"{session}: a session by the passkey {record.id}."
        )

    async def clear(self) -> None:
        """Remove all passkeys, also those that do not count."""
        for id in await self._bucket.keys():
            await self._bucket.delete(id)

    async def refused(self, why: str) -> Refusal:
        """Return the refusal of a sign-in, and record why."""
        await self._audit.refused("passkey_refused", why)
        return refusal(ErrorCode.UNAUTHORIZED, "This passkey does not count here.")

    async def invalid(self, why: str) -> Refusal:
        """Return the refusal of a registration, and record why."""
        await self._audit.refused("passkey_refused", why)
        return InvalidField(("credential",), "The passkey is not valid here, or it took too long. Try again.")

    async def _checked(self, check: Callable[[], T]) -> T | None:
        """Return the result of a check of the verifier; None for a response that it refuses."""
        try:
            return await anyio.to_thread.run_sync(check)
        except Refusal:
            raise
        except Exception as error:
            log.info("a passkey's response is refused: %s: %.200s", type(error).__name__, error)
            return None

    def _sealed(self, record: PasskeyRecord) -> PasskeyRecord:
        return msgspec.structs.replace(record, mac=self._mac(record))

    def _is_own(self, record: PasskeyRecord) -> bool:
        """Report whether a record was written with the key of the home."""
        if record.mac == self._mac(record):
            return True
        log.warning("%s is no passkey of this home: its record was not written by a gateway of it", record.id)
        return False

    def _mac(self, record: PasskeyRecord) -> str:
        text = msgspec.json.encode(("passkey", msgspec.structs.replace(record, mac=""))).decode()
        return self._key.require_mac(text)


def to_base64url(content: bytes) -> str:
    """Return bytes as WebAuthn's JSON has them."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _credential(response: Response) -> bytes:
    """Return the authenticator's name of the passkey in a response; b"" if there is none."""
    given = response.get("id")
    try:
        return urlsafe_b64decode(f"{given}==") if isinstance(given, str) else b""
    except ValueError:
        return b""
