"""TokenRegistry: who presents an access token, and whether the token still counts.

Every process with an HTTP port has one. It follows the bucket of tokens and the identities in memory, so that a
revocation counts everywhere at once.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.subjects import TOKEN_BUCKET, TOKENS_CHANGED
from trunkline.contracts.auth.tokens import TOKEN_PREFIX, AccessTokenRecord, TokensChanged
from trunkline.contracts.gateway.access import Identity
from trunkline.errors import Unavailable
from trunkline.runtime.auth.identity_files import IdentityFiles
from trunkline.runtime.auth.token_key import TokenKey
from trunkline_bus import Bus, BusError, ReceivedMessage
from trunkline_bus.backoff import Backoff

T = TypeVar("T")

log = logging.getLogger(__name__)

RELOAD_SECONDS = 30.0
"""Seconds after which the bucket is read again, in case a notice was lost, or the bucket was deleted."""

READY_SECONDS = 5.0
"""Seconds that a request waits for the first read of tokens and identities."""

_OF_PLUGIN = "plugin:"
"""The beginning of the keys of identities without an access token."""


def utc_now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


class TokenRegistry:
    """Identifies the presenter of an access token. ``run`` must be running.

    Guarantees: a token that is unknown, ended or expired identifies nobody, and neither does a token of an identity
    that is unknown, suspended or revoked. Without the key, the bucket or memory no access token identifies anybody.
    """

    def __init__(self, bus: Bus, key: TokenKey, *, now: Callable[[], datetime] = utc_now) -> None:
        self._bus = bus
        self._bucket = bus.kv(TOKEN_BUCKET)
        self._key = key
        self._now = now
        self._records: dict[str, AccessTokenRecord] | None = None
        self._ids: dict[str, str] = {}
        self._refreshed: dict[str, AccessTokenRecord | None] = {}
        """The records that were read one by one since all of them were asked for."""
        self._identities = IdentityFiles(bus, self._end_invalid)
        self._ends: WeakValueDictionary[str, anyio.Event] = WeakValueDictionary()
        self._loaded = anyio.Event()
        self._outdated = anyio.Event()

    @property
    def session_cookie(self) -> str:
        """The name of the cookie with the token of a session of this home."""
        return self._key.session_cookie

    async def run(self) -> None:
        """Follow the bucket and the identities until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._identities.run)
            tasks.start_soon(self._follow_tokens)

    async def identify(self, token: str) -> Identity | None:
        """Return the identity that presents a token; None if the token does not count.

        Raises:
            Unavailable: the tokens or the identities cannot be read now.
        """
        await self._known(lambda: self._records)
        found = self.find(token)
        if found is None or not self._counts(*found):
            return None
        return await self._identity_of(found[0])

    async def identity_of(self, token_id: str) -> Identity | None:
        """Return the identity of a token by the token's id; None if the token does not count.

        Raises:
            Unavailable: the tokens or the identities cannot be read now.
        """
        await self._known(lambda: self._records)
        record = self.record(token_id)
        if record is None or not record.is_valid(self._now()):
            return None
        return await self._identity_of(record)

    async def _identity_of(self, record: AccessTokenRecord) -> Identity | None:
        if record.identity != OWNER:
            await self._known(lambda: self._identities.records)
        type = self._type_of(record)
        return None if type is None else _identity(record, type)

    async def admits(self, identity: Identity) -> bool:
        """Report whether somebody may enter whom a plugin's authenticator knows: not if the owner has suspended or
        revoked the identity of this id. Raises Unavailable.
        """
        key = _key_of(identity)
        if key:
            await self._known(lambda: self._identities.records)
        return not key or self._is_valid(key)

    def find(self, token: str) -> tuple[AccessTokenRecord, str] | None:
        """Return the record of a token and the token's mac, whether or not the token counts; None if it is unknown."""
        if not token.startswith(TOKEN_PREFIX) or (mac := self._key.mac(token)) is None:
            return None
        record = (self._records or {}).get(self._ids.get(mac, ""))
        return None if record is None else (record, mac)

    def record(self, token_id: str) -> AccessTokenRecord | None:
        """Return the record of a token; None if there is none."""
        return (self._records or {}).get(token_id)

    def records(self) -> tuple[AccessTokenRecord, ...]:
        """Return all records, those of ended tokens included."""
        return tuple((self._records or {}).values())

    def ended(self, identity: Identity) -> anyio.Event:
        """Return an event that is set when the credential of an identity does not count any more: its token has ended,
        or the owner has suspended or revoked somebody whom a plugin's authenticator knows. It is never set for an owner
        without an access token.
        """
        key = _key_of(identity)
        event = self._ends.get(key) if key else anyio.Event()
        if event is None or event.is_set():  # set: the identity may have been let in again since
            event = self._ends[key] = anyio.Event()
            if not self._is_valid(key):
                event.set()
        return event

    async def _known(self, get: Callable[[], T | None]) -> T:
        """Return what has been read; wait for the first read. Raises Unavailable."""
        with anyio.move_on_after(READY_SECONDS):
            while get() is None:
                await self._loaded.wait()
        if (known := get()) is None:
            raise Unavailable("The access tokens or the identities cannot be read now.")
        return known

    def _counts(self, record: AccessTokenRecord, mac: str) -> bool:
        now = self._now()
        return record.is_valid(now) and not record.is_outdated(mac, now)

    def _is_valid(self, id: str) -> bool:
        """Report whether a credential that counted still does, by its key. What cannot be read now ends nothing: it
        refuses.
        """
        if id.startswith(_OF_PLUGIN):
            known = (self._identities.records or {}).get(id.removeprefix(_OF_PLUGIN))
            return known is None or known.status == "active"
        if self._records is None:
            return True
        record = self._records.get(id)
        if record is None or not record.is_valid(self._now()):
            return False
        return self._identities.records is None or self._type_of(record) is not None

    def _type_of(self, record: AccessTokenRecord) -> str | None:
        """Return the type of a token's identity; None if the identity may not enter."""
        if record.identity == OWNER:
            return OWNER
        identity = (self._identities.records or {}).get(record.identity)
        return identity.type if identity is not None and identity.status == "active" else None

    async def _follow_tokens(self) -> None:
        await self._bus.subscribe(TOKENS_CHANGED, self._tokens_changed, limit=1)
        undo = self._bus.on_reconnect(self._reconnected)
        backoff = Backoff(0.1, 1.0)
        try:
            while True:
                self._outdated = anyio.Event()
                try:
                    self._load(await self._read_all())
                except BusError as error:
                    log.warning("access tokens are refused, because their bucket cannot be read: %s", error)
                    self._load(None)
                    await backoff.sleep()
                    continue
                backoff.reset()
                with anyio.move_on_after(self._seconds_to_next_expiry()):
                    await self._outdated.wait()
        finally:
            undo()

    async def _read_all(self) -> list[AccessTokenRecord]:
        """Return all records. What ``refresh`` read in the meantime is newer: a token that was revoked since must not
        count again, and one that was issued since must count. Raises BusError.
        """
        self._refreshed = {}
        found: dict[str, AccessTokenRecord | None] = {
            one.key: one.value for one in await self._bucket.entries()
        }
        return [record for record in (found | self._refreshed).values() if record is not None]

    def _seconds_to_next_expiry(self) -> float:
        """Return the seconds after which a token expires, RELOAD_SECONDS at most."""
        now = self._now()
        times = [one.expires for one in self.records() if one.is_valid(now) and one.expires is not None]
        return min([RELOAD_SECONDS, *((time - now).total_seconds() for time in times)])

    async def refresh(self, ids: Iterable[str]) -> None:
        """Read these records from the leader of the bucket, so that a change counts at once.

        Raises BusError, and Unavailable if nothing could be read before.
        """
        await self._known(lambda: self._records)
        for id in ids:
            entry = await self._bucket.get(id)
            record = self._refreshed[id] = None if entry is None else entry.value
            self._set(id, record)
        self._end_invalid()
        if self._seconds_to_next_expiry() < RELOAD_SECONDS:
            self._outdated.set()  # otherwise the streams of a token that expires soon would end later

    async def _tokens_changed(self, message: ReceivedMessage[TokensChanged]) -> None:
        try:
            await self.refresh(message.data.ids)
        except (BusError, Unavailable):
            self._outdated.set()

    async def _reconnected(self) -> None:
        self._outdated.set()

    def _load(self, records: list[AccessTokenRecord] | None) -> None:
        self._records, self._ids = None if records is None else {}, {}
        for record in records or ():
            self._set(record.id, record)
        self._end_invalid()

    def _set(self, id: str, record: AccessTokenRecord | None) -> None:
        records = self._records = self._records or {}
        earlier = records.pop(id, None)
        for mac in _macs(earlier):
            self._ids.pop(mac, None)
        if record is not None:
            records[id] = record
            self._ids |= dict.fromkeys(_macs(record), id)

    def _end_invalid(self) -> None:
        """Set the events of tokens that do not count any more, and wake requests that wait for the first read."""
        for id, event in list(self._ends.items()):
            if not self._is_valid(id):
                event.set()
        self._loaded.set()
        self._loaded = anyio.Event()


def _macs(record: AccessTokenRecord | None) -> tuple[str, ...]:
    return () if record is None else tuple(mac for mac in (record.mac, record.previous) if mac)


def _identity(record: AccessTokenRecord, type: str) -> Identity:
    return Identity(
        id=record.identity, type=type, scope=record.scope, token_id=record.id, blocks=record.blocks
    )


def _key_of(identity: Identity) -> str:
    """Return what stands for the credential of an identity; "" for an owner without an access token."""
    if identity.token_id or identity.type == OWNER:
        return identity.token_id
    return f"{_OF_PLUGIN}{identity.id}"
