"""Pairing: a code that the owner shows becomes, once, an access token of a browser or a program."""

import hmac
from datetime import UTC, datetime, timedelta

import msgspec

from trunkline.contracts.auth.messages import IssueToken, PairingStarted, StartPairing
from trunkline.contracts.auth.pairing_codes import (
    LINK_SECONDS,
    MOST_PENDING,
    MOST_WRONG,
    PAIRING_SECONDS,
    PendingPairing,
    PendingPairings,
    new_code,
    new_link_code,
    normalize_code,
)
from trunkline.contracts.auth.subjects import PAIRING_BUCKET
from trunkline.contracts.auth.tokens import TokenKind
from trunkline.errors import ErrorCode
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.auth.token_service import NewToken, TokenService, check_label
from trunkline.workers.gateway.errors import refusal
from trunkline_bus import Bus, KeyValueEntry, SequenceConflict

PENDING = "pending"
"""The only key of the bucket: one record has all codes that wait."""

ATTEMPTS = 20
"""The number of times that a change is tried again after another gateway changed the record."""


class PairingService:
    """Starts and completes pairings.

    Guarantees: a code works once, and not after its expiry. After MOST_WRONG wrong attempts no code that waits works
    any more. All of this holds for any number of gateways, and after a restart.

    Methods raise Refusal with a fixed code, BusError when the bus or memory does not answer, and StorageError when the
    key cannot be read.
    """

    def __init__(self, bus: Bus, key: TokenKey, tokens: TokenService, audit: AuthAudit) -> None:
        self._bucket = bus.kv(PAIRING_BUCKET)
        self._key = key
        self._tokens = tokens
        self._audit = audit

    async def start(self, request: StartPairing) -> PairingStarted:
        """Return a new code. Refused with ``rate_limited`` while too many wait, and as ``TokenService.check``."""
        await self._tokens.check(request.identity, request.scope)
        check_label(request.label)  # now, not when the code has been used up
        code = new_link_code() if request.is_local else new_code()
        seconds = LINK_SECONDS if request.is_local else PAIRING_SECONDS
        pending = PendingPairing(
            mac=self._key.require_mac(code),
            identity=request.identity,
            scope=request.scope,
            expires=datetime.now(UTC) + timedelta(seconds=seconds),
            label=request.label,
            is_local=request.is_local,
            by=request.actor,
        )
        await self._add(pending)
        kind = "a link for this machine" if request.is_local else "a code"
        why = f"{kind} for {request.identity} with the scope {request.scope}."
        await self._audit.record("pairing_started", request.actor, why)
        return PairingStarted(code=code, expires=pending.expires)

    async def cancel(self, actor: str) -> int:
        """End all codes that wait; return their number."""
        entry = await self._bucket.get(PENDING)
        waiting = len(_waiting(entry))
        await self._bucket.delete(PENDING)
        await self._audit.record("pairing_cancelled", actor, f"Codes that waited: {waiting}.")
        return waiting

    async def complete(self, text: str, kind: TokenKind, *, label: str = "", is_local: bool) -> NewToken:
        """Return the token that a code becomes. ``is_local`` is true for a request of this machine. The owner's label
        of the code has precedence over ``label``, which whoever uses the code chose.

        Refused with ``unauthorized`` for a code that is wrong, used, expired, or for this machine only; the reply does
        not say which.
        """
        mac = self._key.require_mac(normalize_code(text))
        pairing = await self._take(mac, is_local)
        if pairing is None:
            await self._audit.refused("pairing_refused", "A pairing code was wrong, used or expired.")
            raise refusal(ErrorCode.UNAUTHORIZED, "This code is not valid. Ask for a new one: trunkline pair")
        request = IssueToken(
            identity=pairing.identity,
            scope=pairing.scope,
            label=pairing.label or label,
            actor=pairing.by,
        )
        new = await self._tokens.issue(request, kind, paired=True)
        why = f"{new.record.id}: a {kind} of {pairing.identity} by a pairing code of {pairing.by}."
        await self._audit.record("paired", pairing.identity, why)
        return new

    async def _add(self, pairing: PendingPairing) -> None:
        for _ in range(ATTEMPTS):
            entry = await self._bucket.get(PENDING)
            waiting = _with_room(_waiting(entry), pairing)
            if await self._store(entry, PendingPairings(codes=(*waiting, pairing), wrong=_wrong(entry))):
                return
        raise refusal(ErrorCode.CONFLICT)

    async def _take(self, mac: str, is_local: bool) -> PendingPairing | None:
        """Remove and return the pairing with this code; count a wrong attempt otherwise. Every code is compared, in
        constant time.
        """
        for _ in range(ATTEMPTS):
            entry = await self._bucket.get(PENDING)
            waiting = _waiting(entry)
            if entry is None or not waiting:
                return None
            matches = [one for one in waiting if hmac.compare_digest(one.mac, mac)]
            found = next((one for one in matches if is_local or not one.is_local), None)
            if found is not None:
                left = PendingPairings(
                    codes=tuple(one for one in waiting if one is not found), wrong=_wrong(entry)
                )
            else:
                left = PendingPairings(codes=waiting, wrong=_wrong(entry) + 1)
            if left.wrong >= MOST_WRONG:
                left = PendingPairings()
            if await self._store(entry, left):
                return found
        return None

    async def _store(self, entry: KeyValueEntry[PendingPairings] | None, new: PendingPairings) -> bool:
        """Store the record unless somebody else changed it; report whether it is stored."""
        if not new.codes:
            new = msgspec.structs.replace(new, wrong=0)
        try:
            if entry is None:
                await self._bucket.create(PENDING, new)
            else:
                await self._bucket.update(PENDING, new, entry.revision)
        except SequenceConflict:
            return False
        return True


def _waiting(entry: KeyValueEntry[PendingPairings] | None) -> tuple[PendingPairing, ...]:
    if entry is None or entry.value is None:
        return ()
    now = datetime.now(UTC)
    return tuple(one for one in entry.value.codes if now < one.expires)


def _with_room(waiting: tuple[PendingPairing, ...], new: PendingPairing) -> tuple[PendingPairing, ...]:
    """Return those that wait, with room for another one of its kind. Refused with ``rate_limited`` for a code too many;
    of the links of this machine, which nobody can guess, the oldest one makes room.
    """
    same = [one for one in waiting if one.is_local == new.is_local]
    if len(same) < MOST_PENDING:
        return waiting
    if not new.is_local:
        sentence = f"{MOST_PENDING} pairing codes wait already. Use one, or end them: trunkline pair --cancel"
        raise refusal(ErrorCode.RATE_LIMITED, sentence)
    return tuple(one for one in waiting if one is not same[0])


def _wrong(entry: KeyValueEntry[PendingPairings] | None) -> int:
    """Return the wrong attempts since the oldest code that waits was made; none when no code waits."""
    return entry.value.wrong if entry is not None and entry.value is not None and _waiting(entry) else 0
