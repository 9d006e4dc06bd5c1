"""AuthService: the operations about identities and tokens that reach further than one record."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from trunkline.contracts.auth.identity import IDENTITY_FOLDER, IdentityRecord
from trunkline.contracts.auth.messages import ChangeIdentity, PasskeysRemoved, RevokeToken, TokensRevoked
from trunkline.contracts.auth.passkey_verifier import PasskeyVerifier
from trunkline.contracts.auth.passkeys import PasskeyRecord
from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.contracts.turns.messages import TurnCancelRequested, TurnRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import Unavailable
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.auth.identity_files import read_identities
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.auth.identities import IdentityService
from trunkline.workers.gateway.auth.pairings import PairingService
from trunkline.workers.gateway.auth.passkey_ceremonies import PasskeyCeremonies
from trunkline.workers.gateway.auth.passkey_challenges import PasskeyChallenges
from trunkline.workers.gateway.auth.passkeys import PasskeyService
from trunkline.workers.gateway.auth.policies import PolicyService
from trunkline.workers.gateway.auth.sender_links import SenderLinks
from trunkline.workers.gateway.auth.share_service import ShareService
from trunkline.workers.gateway.auth.token_service import TokenService
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Bus, BusError, ReceivedMessage, key_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuthService:
    """The services about who may enter, and the operations that end what somebody runs.

    Guarantees: when an operation that revokes returns, the cancellations of the turns are stored; within a second the
    tokens are refused at every port and their streams have ended. A gateway that was killed in between completes the
    cancellations at its next start.

    Methods raise Refusal with a fixed code, and BusError when the bus or memory does not answer.
    """

    bus: Bus
    turns: TurnLookup
    registry: TokenRegistry
    identities: IdentityService
    tokens: TokenService
    pairings: PairingService
    senders: SenderLinks
    passkeys: PasskeyService
    ceremonies: PasskeyCeremonies
    policies: PolicyService
    sharing: ShareService
    audit: AuthAudit

    @classmethod
    def of(
        cls,
        bus: Bus,
        turns: TurnLookup,
        key: TokenKey,
        registry: TokenRegistry,
        log: AuditLog,
        verifier: PasskeyVerifier | None,
    ) -> Self:
        """Return the services of one gateway."""
        audit = AuthAudit(log)
        identities = IdentityService(bus, audit)
        tokens = TokenService(bus, key, registry, identities, audit)
        pairings = PairingService(bus, key, tokens, audit)
        senders = SenderLinks(bus, key, audit)
        passkeys = PasskeyService(bus, key, audit, verifier)
        ceremonies = PasskeyCeremonies(PasskeyChallenges(bus, key), passkeys, tokens, identities)
        policies = PolicyService(bus, identities, audit)
        sharing = ShareService(policies)
        return cls(
            bus,
            turns,
            registry,
            identities,
            tokens,
            pairings,
            senders,
            passkeys,
            ceremonies,
            policies,
            sharing,
            audit,
        )

    async def revoke_token(self, request: RevokeToken) -> TokensRevoked:
        """Revoke a token, cancel the turns that it started, and remove the passkeys that were registered in it. Refused
        with ``not_found`` and ``conflict``.
        """
        record = await self.tokens.find(request.id)
        revoked = await self._revoke(record, request.actor)
        why = f"{record.id} of {record.identity}; {revoked.turns} turns are cancelled."
        await self.audit.record("token_revoked", request.actor, why)
        return revoked

    async def rotate_key(self, actor: str) -> TokensRevoked:
        """End every token and passkey by another key, and cancel the turns that tokens started."""
        ended = await self.tokens.rotate_key(actor)
        await self.passkeys.clear()
        return TokensRevoked(tokens=len(ended), turns=await self._cancel_turns(_of_tokens(ended), actor))

    async def change_identity(self, request: ChangeIdentity) -> IdentityRecord:
        """Change the status or the name of an identity. If it is not active, its turns are cancelled; if it is revoked,
        its tokens end for good.
        """
        record = await self.identities.change(request)
        if record.status != "active":
            await self._end_identity(record, request.actor)
        return record

    async def remove_passkeys(self, records: Sequence[PasskeyRecord], actor: str) -> PasskeysRemoved:
        """Remove passkeys and revoke the sessions that they opened. The passkeys that were registered in these sessions
        go too, so that whoever used a passkey without permission does not stay by another one.
        """
        ids = [record.id for record in records]
        ended = [*await self._end_sessions(ids)]
        await self.passkeys.remove(records, actor)
        ended += await self._end_sessions(ids)  # one may have been opened in between
        turns = await self._cancel_turns(_of_tokens(ended), actor)
        further = await self._remove_passkeys_of(ended, actor)
        return PasskeysRemoved(
            passkeys=len(records) + further.passkeys,
            tokens=len(ended) + further.tokens,
            turns=turns + further.turns,
        )

    async def sign_out(self, token_id: str) -> None:
        """End the token of a request. Turns that it started go on: their person only leaves the browser."""
        record = await self.tokens.find(token_id)
        await self.tokens.end([record], "signed_out")
        await self.audit.record("signed_out", record.identity, f"{record.id}: a {record.kind}.")

    async def note_presented(self, token: str) -> None:
        """Note that somebody presented a token, for sessions that were rotated: the present token shows that the
        browser has it, so the previous one ends. The previous one after that shows that the cookie was copied. Nobody
        knows who has the copy, so the session ends for both. Raises nothing.
        """
        found = self.registry.find(token)
        if found is None:
            return
        record, mac = found
        try:
            if record.is_confirmed_by(mac):
                await self.tokens.confirm_rotation(record.id, mac)
            elif record.ended is None and record.is_outdated(mac, datetime.now(UTC)):
                revoked = await self._revoke(record, "revoked")
                why = f"{record.id} of {record.identity} ended: a copy of its earlier cookie was presented"
                await self.audit.refused("session_copied", f"{why}; {revoked.turns} turns are cancelled.")
        except (BusError, Unavailable) as error:  # the next request with the token does it
            log.warning("the rotation of session %s cannot be followed now: %s", record.id, error)

    async def watch(self) -> None:
        """End what identities run whose files are changed in memory by hand. Subscribes and returns."""
        await self.bus.subscribe(MEMORY_CHANGED, self._memory_changed, limit=1, part="files")

    async def complete_revocations(self) -> None:
        """Cancel the turns of tokens that were revoked while no gateway was left to do so."""
        revoked = [one.id for one in await self.tokens.records() if one.ended == "revoked"]
        try:
            await self._cancel_turns(_of_tokens(revoked), "revoked")
        except BusError as error:
            log.warning("the turns of revoked tokens cannot be looked up now: %s", error)

    async def _memory_changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        paths = set(message.data.paths)
        if not any(path.startswith(f"{IDENTITY_FOLDER}/") for path in paths):
            return
        for record in (await read_identities(self.bus)).values():
            if record.status != "active":
                await self._end_identity(record, "revoked")

    async def _end_identity(self, record: IdentityRecord, by: str) -> None:
        if record.status == "revoked":
            await self.tokens.end(await self.tokens.of_identity(record.id), "revoked")
            await self.passkeys.remove(await self.passkeys.records(record.id), by)
        await self._cancel_turns(lambda request: request.actor == record.id, by)

    async def _revoke(self, record: AccessTokenRecord, by: str) -> TokensRevoked:
        """End a token, cancel the turns that it started, and remove the passkeys that were registered in it."""
        ended = await self.tokens.end([record], "revoked")
        await self._remove_passkeys_of([record.id], by)
        turns = await self._cancel_turns(lambda one: one.token_id == record.id, by)
        return TokensRevoked(tokens=len(ended), turns=turns)

    async def _remove_passkeys_of(self, tokens: Collection[str], actor: str) -> PasskeysRemoved:
        """Remove the passkeys that were registered in these sessions."""
        found = [one for one in await self.passkeys.records() if one.token in tokens]
        return await self.remove_passkeys(found, actor) if found else PasskeysRemoved(passkeys=0)

    async def _end_sessions(self, passkeys: Collection[str]) -> tuple[str, ...]:
        return await self.tokens.end(await self.tokens.of_passkeys(passkeys), "revoked")

    async def _cancel_turns(self, matches: Callable[[TurnRequested], bool], by: str) -> int:
        found = await self.turns.unfinished_requests(matches)
        for turn in found:
            assert turn.turn is not None and turn.conversation is not None
            item = TurnCancelRequested(turn=turn.turn, by=by)
            msg_id = key_of("revoked", turn.turn)
            await self.bus.append(INBOX, item, scope=turn, msg_id=msg_id, conversation=turn.conversation)
        return len(found)


def _of_tokens(ids: Collection[str]) -> Callable[[TurnRequested], bool]:
    known = frozenset(ids)
    return lambda request: request.token_id in known
