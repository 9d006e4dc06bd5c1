"""The two ceremonies of passkeys: a session registers one, and one opens a session."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trunkline.contracts.auth.messages import IssueToken
from trunkline.contracts.auth.passkey_verifier import PasskeyCeremony
from trunkline.contracts.auth.passkeys import CHALLENGE_SECONDS, PasskeyRecord
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.auth.attempt_limiter import AttemptLimiter
from trunkline.workers.gateway.auth.identities import IdentityService
from trunkline.workers.gateway.auth.passkey_challenges import ChallengePurpose, PasskeyChallenges
from trunkline.workers.gateway.auth.passkeys import PasskeyService, Response, to_base64url
from trunkline.workers.gateway.auth.token_service import NewToken, TokenService
from trunkline.workers.gateway.errors import refusal
from trunkline_bus import Refusal

TIMEOUT_MS = int(CHALLENGE_SECONDS * 1000)

MOST_ATTEMPTS, ATTEMPT_SECONDS = 10, 60.0
"""The number of sign-ins that may be tried with one passkey within so many seconds, at each gateway."""

IDENTITY_CODES = (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.INVALID_REQUEST)
"""The codes with which an identity that may not enter gets no token."""


class PasskeyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A passkey to register in a session. ``scope`` None is that of the session."""

    session: AccessTokenRecord
    challenge: str
    response: Response
    label: str = ""
    scope: TokenScope | None = None


class PasskeyCeremonies:
    """Makes the options that a browser is given, and acts on its responses. ``origin`` is that of the page that asks.

    Guarantees: a passkey permits no more than the session that registered it, and belongs to its identity. A passkey
    that was removed opens no session, and a session that was revoked leaves no passkey, also if both happen in the same
    moment. Strangers fill no memory and keep nobody out: only attempts with a known passkey are counted.

    Methods raise Refusal with a fixed code, BusError when the bus or memory does not answer, and StorageError when the
    key cannot be read.
    """

    def __init__(
        self,
        challenges: PasskeyChallenges,
        passkeys: PasskeyService,
        tokens: TokenService,
        identities: IdentityService,
    ) -> None:
        self._challenges = challenges
        self._passkeys = passkeys
        self._tokens = tokens
        self._identities = identities
        self._attempts = AttemptLimiter(MOST_ATTEMPTS, ATTEMPT_SECONDS)

    async def registration_options(self, session: AccessTokenRecord, origin: str) -> dict[str, Any]:
        """Return a ``PublicKeyCredentialCreationOptionsJSON``."""
        identity = await self._identities.get(session.identity)
        challenge = self._challenges.new(_registering(session, origin))
        known = [one for one in await self._passkeys.records(identity.id) if one.host == host_of(origin)]
        return {
            "rp": {"id": host_of(origin), "name": "Trunkline"},
            "user": {
                "id": to_base64url(self._passkeys.user_handle(identity.id)),
                "name": identity.id,
                "displayName": identity.display_name,
            },
            "challenge": to_base64url(challenge.encode()),
            "pubKeyCredParams": [
                {"type": "public-key", "alg": number} for number in self._passkeys.verifier.algorithms
            ],
            "timeout": TIMEOUT_MS,
            "excludeCredentials": [
                {"type": "public-key", "id": to_base64url(one.credential)} for one in known
            ],
            "authenticatorSelection": {
                "residentKey": "required",
                "requireResidentKey": True,
                "userVerification": "required",
            },
            "attestation": "none",
        }

    async def register(self, request: PasskeyRequest, origin: str) -> PasskeyRecord:
        """Register a passkey. Refused with ``forbidden`` for a larger scope than that of the session, with
        ``invalid_request`` if the challenge or the response does not count, and as ``PasskeyService.register``.
        """
        session, scope = request.session, request.scope or request.session.scope
        if not session.scope.includes(scope):
            raise refusal(ErrorCode.FORBIDDEN)
        if not await self._challenges.take(request.challenge, _registering(session, origin)):
            raise await self._passkeys.invalid("A challenge was wrong, used or expired.")
        draft = PasskeyRecord(
            id="", credential=b"", public_key=b"",
            identity=session.identity, scope=scope, blocks=session.blocks, token=session.id, label=request.label,
            host=host_of(origin), created=datetime.now(UTC),
        )  # fmt: skip
        ceremony = self._ceremony(request.challenge, origin, session.identity)
        record = await self._passkeys.register(request.response, ceremony, draft)
        if not await self._tokens.counts(session.id):
            await self._passkeys.remove([record], session.identity)
            raise refusal(ErrorCode.UNAUTHORIZED)
        return record

    def sign_in_options(self, origin: str) -> dict[str, Any]:
        """Return a ``PublicKeyCredentialRequestOptionsJSON``. It names no passkey, so it tells nobody which exist."""
        challenge = self._challenges.new(_signing_in(origin))
        return {
            "challenge": to_base64url(challenge.encode()),
            "rpId": host_of(origin),
            "allowCredentials": [],
            "userVerification": "required",
            "timeout": TIMEOUT_MS,
        }

    async def sign_in(self, challenge: str, response: Response, origin: str) -> NewToken:
        """Return a new session. Refused with ``unauthorized`` if the passkey, the challenge, the response or the
        identity does not count, and with ``rate_limited`` after too many attempts with one passkey.
        """
        stored = await self._passkeys.named_by(response, host_of(origin))
        if not self._attempts.permits(stored.record.id):
            raise refusal(ErrorCode.RATE_LIMITED)
        if not await self._challenges.take(challenge, _signing_in(origin)):
            raise await self._passkeys.refused("A challenge was wrong, used or expired.")
        ceremony = self._ceremony(challenge, origin, stored.record.identity)
        record = await self._passkeys.count_use(response, ceremony, stored)
        new = await self._open_session(record)
        if not await self._passkeys.exists(record.id):
            await self._tokens.end([new.record], "revoked")
            raise await self._passkeys.refused(
                f"{record.id} of {record.identity} was removed in this moment."
            )
        await self._passkeys.note_sign_in(record, new.record.id)
        return new

    async def _open_session(self, record: PasskeyRecord) -> NewToken:
        wanted = IssueToken(
            identity=record.identity, scope=record.scope, label=record.label, blocks=record.blocks,
            actor=record.identity,
        )  # fmt: skip
        try:
            return await self._tokens.issue(wanted, "session", passkey=record.id)
        except Refusal as error:
            if error.code not in IDENTITY_CODES:
                raise
            raise await self._passkeys.refused(f"{record.id}: {record.identity} may not enter.") from error

    def _ceremony(self, challenge: str, origin: str, identity: str) -> PasskeyCeremony:
        user = self._passkeys.user_handle(identity)
        return PasskeyCeremony(challenge=challenge.encode(), origin=origin, host=host_of(origin), user=user)


def host_of(origin: str) -> str:
    """Return the host name of an origin."""
    return urlsplit(origin).hostname or ""


def _registering(session: AccessTokenRecord, origin: str) -> ChallengePurpose:
    return ChallengePurpose(ceremony="register", origin=origin, session=session.id)


def _signing_in(origin: str) -> ChallengePurpose:
    return ChallengePurpose(ceremony="sign-in", origin=origin)
