"""The entries of the audit log about identities, tokens and sign-ins."""

from typing import Literal

from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.gateway.auth.attempt_limiter import AttemptLimiter

AuthEvent = Literal[
    "identity_created",
    "identity_changed",
    "token_issued",
    "token_revoked",
    "key_rotated",
    "pairing_started",
    "pairing_cancelled",
    "paired",
    "pairing_refused",
    "passkey_added",
    "passkey_removed",
    "passkey_refused",
    "signed_in",
    "signed_out",
    "session_copied",
    "sign_in_refused",
    "access_granted",
    "access_revoked",
]

SINGLE_REFUSALS, SINGLE_SECONDS = 10, 60.0
"""The number of refusals of a kind within so many seconds that are recorded one by one."""

EVERY_BLOCK = "all"
"""The block of entries that are about no block."""


class AuthAudit:
    """Records who changed what about identities and tokens. Never a token, a code or a hash of one."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._single = AttemptLimiter(SINGLE_REFUSALS, SINGLE_SECONDS)

    async def record(self, event: AuthEvent, actor: str, why: str) -> None:
        """Record an event. ``why`` is a sentence."""
        await self._audit.record(
            event="auth", block=EVERY_BLOCK, actor=actor, by=(actor,), why=why, status=event
        )

    async def refused(self, event: AuthEvent, why: str) -> None:
        """Record a refusal. Many of them are counted instead of recorded one by one: whoever reaches the port could
        fill memory, where the log is kept.
        """
        fields = {
            "event": "auth", "block": EVERY_BLOCK, "actor": "", "why": why, "status": event, "decision": "denied",
        }  # fmt: skip
        if self._single.permits(event):
            await self._audit.record(**fields)
        else:
            self._audit.count(**fields)

    async def sign_in_refused(self) -> None:
        """Record that a request presented a credential that identifies nobody."""
        await self.refused("sign_in_refused", "A credential identifies nobody.")
