"""The requests and replies about identities, access tokens, pairing and what an identity may do.

``actor`` is who asks: a process that may call an operation states it, as with the operations of memory.
"""

from datetime import datetime

import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.identity import IdentityRecord, IdentityStatus, IdentityType
from trunkline.contracts.auth.passkeys import Passkey
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import TokenEnd, TokenKind
from trunkline.contracts.policies.messages import Policy
from trunkline_bus import Payload


class ListIdentities(Payload, frozen=True, kw_only=True, tag="auth.identities.v1"):
    """Ask for all identities."""


class IdentityList(Payload, frozen=True, kw_only=True, tag="auth.identity-list.v1"):
    """The identities, the built-in owner first."""

    identities: tuple[IdentityRecord, ...]


class CreateIdentity(Payload, frozen=True, kw_only=True, tag="auth.identity-create.v1"):
    """Create an active identity. It may do nothing until something is granted to it."""

    id: str
    identity_type: IdentityType = "collaborator"
    display_name: str = ""
    actor: str = OWNER


class ChangeIdentity(Payload, frozen=True, kw_only=True, tag="auth.identity-change.v1"):
    """Suspend, revoke, reactivate or rename an identity. What is None stays. Unless it is active, its tokens, streams
    and turns end.
    """

    id: str
    status: IdentityStatus | None = None
    display_name: str | None = None
    actor: str = OWNER


class IdentityView(Payload, frozen=True, kw_only=True, tag="auth.identity-view.v1"):
    """One identity."""

    identity: IdentityRecord


class IssueToken(Payload, frozen=True, kw_only=True, tag="auth.token-issue.v1"):
    """Issue an access token to an identity. ``expires`` None means that it does not expire."""

    identity: str
    scope: TokenScope = TokenScope.CHAT
    label: str = ""
    expires: datetime | None = None
    blocks: tuple[str, ...] | None = None
    actor: str = OWNER


class AccessToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An access token as people see it, without anything of its text. ``passkey`` is the one that opened the session,
    "" for other tokens.
    """

    id: str
    identity: str
    scope: TokenScope
    kind: TokenKind
    created: datetime
    created_by: str
    label: str = ""
    expires: datetime | None = None
    blocks: tuple[str, ...] | None = None
    ended: TokenEnd | None = None
    ended_at: datetime | None = None
    passkey: str = ""


class TokenIssued(Payload, frozen=True, kw_only=True, tag="auth.token-issued.v1"):
    """A new access token. ``text`` is shown once, and stored nowhere."""

    token: AccessToken
    text: str


class ListTokens(Payload, frozen=True, kw_only=True, tag="auth.tokens.v1"):
    """Ask for the access tokens, also for those that ended a short time ago; with ``identity`` only for its tokens."""

    identity: str | None = None


class TokenList(Payload, frozen=True, kw_only=True, tag="auth.token-list.v1"):
    """The access tokens, the oldest first."""

    tokens: tuple[AccessToken, ...]


class RevokeToken(Payload, frozen=True, kw_only=True, tag="auth.token-revoke.v1"):
    """Revoke an access token: it is refused, its streams end, and the turns that it started are cancelled."""

    id: str
    actor: str = OWNER


class TokensRevoked(Payload, frozen=True, kw_only=True, tag="auth.tokens-revoked.v1"):
    """The number of access tokens that ended, and of turns that are cancelled."""

    tokens: int
    turns: int = 0


class RotateKey(Payload, frozen=True, kw_only=True, tag="auth.key-rotate.v1"):
    """Replace the key with which tokens are hashed, which ends all access tokens and sessions."""

    actor: str = OWNER


class CheckAccess(Payload, frozen=True, kw_only=True, tag="auth.check.v1"):
    """Ask whether an identity may do something. ``resource`` and ``action`` are those of a policy."""

    identity: str
    resource: str
    action: str


class AccessChecked(Payload, frozen=True, kw_only=True, tag="auth.checked.v1"):
    """The answer of the policies: ``why`` is a sentence, ``by`` the policies that decide."""

    allowed: bool
    asks: bool = False
    why: str = ""
    by: tuple[str, ...] = ()


class GrantAccess(Payload, frozen=True, kw_only=True, tag="auth.grant.v1"):
    """Add a policy. Its id is derived from its content if it has none."""

    policy: Policy
    actor: str = OWNER


class RevokeAccess(Payload, frozen=True, kw_only=True, tag="auth.revoke.v1"):
    """Remove a policy by its id."""

    id: str
    actor: str = OWNER


class PolicyView(Payload, frozen=True, kw_only=True, tag="auth.policy.v1"):
    """One policy, in words too."""

    policy: Policy
    says: str


class ListPolicies(Payload, frozen=True, kw_only=True, tag="auth.policies.v1"):
    """Ask for all policies; with ``subject`` only for those about it."""

    subject: str | None = None


class PolicyList(Payload, frozen=True, kw_only=True, tag="auth.policy-list.v1"):
    """The policies by id. ``unreadable`` are files that cannot be read; while there are any, no tool may be used."""

    policies: tuple[Policy, ...] = ()
    unreadable: tuple[str, ...] = ()


class StartPairing(Payload, frozen=True, kw_only=True, tag="auth.pair-start.v1"):
    """Ask for a code by which a browser or a program gets an access token. With ``is_local`` the code is a one-time
    link for a browser of this machine.
    """

    identity: str = OWNER
    scope: TokenScope = TokenScope.OWNER
    label: str = ""
    is_local: bool = False
    actor: str = OWNER


class PairingStarted(Payload, frozen=True, kw_only=True, tag="auth.pair-started.v1"):
    """A pairing code. It works once and until ``expires``."""

    code: str
    expires: datetime


class CancelPairings(Payload, frozen=True, kw_only=True, tag="auth.pair-cancel.v1"):
    """End all pairing codes that wait."""

    actor: str = OWNER


class PairingsCancelled(Payload, frozen=True, kw_only=True, tag="auth.pair-cancelled.v1"):
    """The number of pairing codes that ended."""

    codes: int


class ListPasskeys(Payload, frozen=True, kw_only=True, tag="auth.passkeys.v1"):
    """Ask for the passkeys; with ``identity`` only for its own."""

    identity: str | None = None


class PasskeyList(Payload, frozen=True, kw_only=True, tag="auth.passkey-list.v1"):
    """The passkeys, the oldest first."""

    passkeys: tuple[Passkey, ...]


class RemovePasskey(Payload, frozen=True, kw_only=True, tag="auth.passkey-remove.v1"):
    """Remove a passkey: it opens no session any more, and those that it opened are revoked."""

    id: str
    actor: str = OWNER


class PasskeysRemoved(Payload, frozen=True, kw_only=True, tag="auth.passkeys-removed.v1"):
    """The number of passkeys that are removed, of sessions that ended with them, and of turns that are cancelled."""

    passkeys: int
    tokens: int = 0
    turns: int = 0
