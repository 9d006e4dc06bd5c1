"""The access tokens: issues, lists and ends them, and renews sessions. The registry decides whom a token identifies."""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import anyio
import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.messages import AccessToken, IssueToken, TokenIssued
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.subjects import TOKEN_BUCKET, TOKENS_CHANGED
from trunkline.contracts.auth.tokens import (
    PAIRED_SECONDS,
    SESSION_SECONDS,
    TOKEN_PREFIX,
    AccessTokenRecord,
    TokenEnd,
    TokenKind,
    TokensChanged,
)
from trunkline.errors import ErrorCode
from trunkline.home.secret_file import replace_secret
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.auth.identities import IdentityService
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, SequenceConflict

ENDED_SECONDS = 86_400.0
"""Seconds for which the record of a token that ended is kept, for lists and for gateways that were down."""

LONGEST_LABEL = 100
"""The largest number of characters of a label."""

LONGEST_TTL = timedelta(days=36_500)
"""The longest time after which a record is dropped by itself."""

SESSION = timedelta(seconds=SESSION_SECONDS)
PAIRED = timedelta(seconds=PAIRED_SECONDS)
RENEWAL = timedelta(days=1)
"""The age after which a session gets another token and a new expiry, and a paired token a new expiry."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was issued, with its text."""

    record: AccessTokenRecord
    text: str


class TokenService:
    """Issues and ends access tokens.

    Guarantees: a token counts in this process when ``issue`` returns, and is refused here when ``end`` returns. Other
    processes are told at the same time.

    Methods raise Refusal with a fixed code, BusError when the bus or memory does not answer, and StorageError when the
    key cannot be read.
    """

    def __init__(
        self, bus: Bus, key: TokenKey, registry: TokenRegistry, identities: IdentityService, audit: AuthAudit
    ) -> None:
        self._bus = bus
        self._bucket = bus.kv(TOKEN_BUCKET)
        self._key = key
        self._registry = registry
        self._identities = identities
        self._audit = audit

    async def check(self, identity: str, scope: TokenScope, expires: datetime | None = None) -> None:
        """Check that a token may be issued. Refused with ``not_found`` for an unknown identity, with ``conflict`` for
        one that is not active, and with ``invalid_request`` for the scope ``owner`` of anyone but the owner.
        """
        record = await self._identities.get(identity)
        if record.status != "active":
            raise refusal(ErrorCode.CONFLICT, f"{identity!r} is {record.status}, so it gets no token.")
        if scope is TokenScope.OWNER and identity != OWNER:
            raise InvalidField(("scope",), "Only the owner's tokens have the scope owner.")
        if expires is not None and expires <= datetime.now(UTC):
            raise InvalidField(("expires",), "This time is in the past.")

    async def issue(
        self, request: IssueToken, kind: TokenKind = "bearer", *, passkey: str = "", paired: bool = False
    ) -> NewToken:
        """Issue a token. ``passkey`` is the one that opens the session. A session, and a ``paired`` token, get an
        expiry that use moves. Refused as ``check`` refuses.
        """
        await self.check(request.identity, request.scope, request.expires)
        check_label(request.label)
        text = TOKEN_PREFIX + secrets.token_urlsafe(32)
        record = AccessTokenRecord(
            id=f"tok_{secrets.token_hex(5)}",
            identity=request.identity,
            scope=request.scope,
            kind=kind,
            mac=self._key.require_mac(text),
            label=request.label,
            created=datetime.now(UTC),
            created_by=request.actor,
            expires=_first_expiry(kind, paired) or request.expires,
            blocks=request.blocks,
            passkey=passkey,
            paired=paired and kind == "bearer",
        )
        await self._bucket.create(record.id, record, _ttl(record))
        await self._announce([record.id])
        why = f"{record.id}: a {kind} of {record.identity} with the scope {record.scope}."
        await self._audit.record("token_issued", request.actor, why)
        return NewToken(record, text)

    async def list_tokens(self, identity: str | None = None) -> tuple[AccessToken, ...]:
        """Return the tokens, the oldest first."""
        found = [one for one in await self.records() if identity in (None, one.identity)]
        return tuple(view(one) for one in sorted(found, key=lambda one: (one.created, one.id)))

    async def records(self) -> list[AccessTokenRecord]:
        """Return all records, also those of tokens that ended a short time ago."""
        return [entry.value for entry in await self._bucket.entries() if entry.value is not None]

    async def find(self, id: str) -> AccessTokenRecord:
        """Return the token that has an id or whose id begins so. Refused with ``not_found`` and ``conflict``."""
        records = await self.records()
        found = [one for one in records if one.id == id] or [
            one for one in records if id and one.id.startswith(id)
        ]
        if len(found) > 1:
            raise refusal(ErrorCode.CONFLICT, f"Several tokens begin with {id!r}. Give more of the id.")
        if not found:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no token {id!r}. trunkline auth tokens shows them.")
        return found[0]

    async def end(self, records: Iterable[AccessTokenRecord], why: TokenEnd) -> tuple[str, ...]:
        """End tokens; return the ids of those that had not ended."""
        ended: list[str] = []
        for record in records:
            if record.ended is None:
                fields = {"ended": why, "ended_at": datetime.now(UTC)}
                gone = msgspec.structs.replace(record, **fields, mac="", previous="")
                await self._bucket.put(record.id, gone, ENDED_SECONDS)
                ended.append(record.id)
        await self._announce(ended)
        return tuple(ended)

    async def counts(self, id: str) -> bool:
        """Report whether a token has neither ended nor expired, as the leader of the bucket knows it."""
        entry = await self._bucket.get(id)
        return entry is not None and entry.value is not None and entry.value.is_valid(datetime.now(UTC))

    async def of_passkeys(self, ids: Collection[str]) -> tuple[AccessTokenRecord, ...]:
        """Return the sessions that these passkeys opened and that have not ended."""
        return tuple(one for one in await self.records() if one.passkey in ids and one.ended is None)

    async def of_identity(self, identity: str) -> tuple[AccessTokenRecord, ...]:
        """Return the tokens of an identity that have not ended."""
        return tuple(one for one in await self.records() if one.identity == identity and one.ended is None)

    async def rotate_key(self, actor: str) -> tuple[str, ...]:
        """Replace the key and end every token; return the ids of those that ended. The key comes first: whatever
        happens afterwards, no earlier token counts.
        """
        await anyio.to_thread.run_sync(replace_secret, self._key.file)
        ended = await self.end(await self.records(), "revoked")
        await self._audit.record("key_rotated", actor, f"{len(ended)} tokens ended.")
        return ended

    async def renewed(self, token_id: str, presented: str) -> NewToken | None:
        """Return the token that the browser of a session must present from now on; None if it has it.

        A session that is older than a day gets another token and a new expiry. Until a browser has presented that
        token, the previous one counts and gets it again, because the answer with it may have been lost.
        """
        now, mac = datetime.now(UTC), self._key.require_mac(presented)
        entry = await self._bucket.get(token_id)
        record = None if entry is None else entry.value
        if entry is None or record is None or record.kind != "session" or not record.is_valid(now):
            return None
        if mac == record.previous and record.confirmed is None:
            text = self._rotated_text(record)
            return NewToken(record, text) if self._key.mac(text) == record.mac else None
        if mac != record.mac or now < (record.rotated or record.created) + RENEWAL:
            return None
        new = msgspec.structs.replace(
            record, previous=mac, rotated=now, confirmed=None, expires=now + SESSION
        )
        text = self._rotated_text(new)
        new = msgspec.structs.replace(new, mac=self._key.require_mac(text))
        try:
            await self._bucket.update(token_id, new, entry.revision, _ttl(new))
        except SequenceConflict:  # another tab was first, or the session was revoked
            return await self.renewed(token_id, presented)
        await self._announce([token_id])
        return NewToken(new, text)

    async def prolonged(self, token_id: str) -> AccessTokenRecord | None:
        """Return the record of a paired token with a new expiry; None if it is none, or got one less than a day ago.
        The token stays the same, because its program cannot be told another one.
        """
        now = datetime.now(UTC)
        entry = await self._bucket.get(token_id)
        record = None if entry is None else entry.value
        if entry is None or record is None or not record.paired or not record.is_valid(now):
            return None
        if record.expires is None or record.expires > now + PAIRED - RENEWAL:
            return None
        new = msgspec.structs.replace(record, expires=now + PAIRED)
        try:
            await self._bucket.update(token_id, new, entry.revision, _ttl(new))
        except SequenceConflict:  # another request was first, or the token was revoked
            return None
        await self._announce([token_id])
        return new

    async def confirm_rotation(self, token_id: str, mac: str) -> None:
        """Note that a browser presented the token with this mac, which ends the previous token after a short grace."""
        entry = await self._bucket.get(token_id)
        if entry is None or entry.value is None or not entry.value.is_confirmed_by(mac):
            return
        new = msgspec.structs.replace(entry.value, confirmed=datetime.now(UTC))
        try:
            await self._bucket.update(token_id, new, entry.revision, _ttl(new))
        except SequenceConflict:  # another request did it, or the session was revoked
            return
        await self._announce([token_id])

    def _rotated_text(self, record: AccessTokenRecord) -> str:
        """Return the token of a session after its last rotation. It is derived from the key, so that it can be sent
        again although it is stored nowhere, and so that all tabs get the same one.
        """
        assert record.rotated is not None
        seed = f"rotation of {record.id} at {record.rotated.isoformat()} after {record.previous}"
        digest = bytes.fromhex(self._key.require_mac(seed))
        return TOKEN_PREFIX + urlsafe_b64encode(digest).decode().rstrip("=")

    async def _announce(self, ids: Iterable[str]) -> None:
        changed = tuple(ids)
        if changed:
            await self._registry.refresh(changed)
            await self._bus.publish(TOKENS_CHANGED, TokensChanged(ids=changed))


def _first_expiry(kind: TokenKind, paired: bool) -> datetime | None:
    if kind == "session":
        return datetime.now(UTC) + SESSION
    return datetime.now(UTC) + PAIRED if paired else None


def check_label(label: str) -> None:
    """Refuse a label that is too long. Raises InvalidField."""
    if len(label) > LONGEST_LABEL:
        raise InvalidField(("label",), f"It must have at most {LONGEST_LABEL} characters.")


def view(record: AccessTokenRecord) -> AccessToken:
    """Return a token as people see it."""
    fields = {name: getattr(record, name) for name in AccessToken.__struct_fields__}
    return AccessToken(**fields)


def issued(new: NewToken) -> TokenIssued:
    """Return the reply with the text of a token."""
    return TokenIssued(token=view(new.record), text=new.text)


def _ttl(record: AccessTokenRecord) -> float | None:
    """Return the seconds until the record may be dropped: a day after its expiry, so that lists show it. NATS cannot
    count to an expiry that is centuries away.
    """
    if record.expires is None or record.expires - datetime.now(UTC) > LONGEST_TTL:
        return None
    return (record.expires - datetime.now(UTC)).total_seconds() + ENDED_SECONDS
