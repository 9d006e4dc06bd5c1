"""AuthClient: the operations about identities, tokens and permissions, for commands and for tools of the owner."""

from datetime import datetime
from typing import TypeVar

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth import linked_senders, messages, subjects
from trunkline.contracts.auth.identity import IdentityRecord, IdentityStatus, IdentityType
from trunkline.contracts.auth.passkeys import Passkey
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import Unavailable
from trunkline_bus import Bus, BusError, Endpoint, RemoteFault

Req = TypeVar("Req")
Rep = TypeVar("Rep")


class AuthClient:
    """Calls the gateway as ``actor``, the owner unless something else is given. ``timeout`` is in seconds.

    Guarantees: what a method changes is stored, and counts at every port, when the method returns.

    Errors: every method raises Unavailable when no gateway answers, and RemoteFault with a code and a sentence for
    people.
    """

    def __init__(self, bus: Bus, *, actor: str = OWNER, timeout: float = 20.0) -> None:
        self._bus = bus
        self._actor = actor
        self._timeout = timeout

    async def identities(self) -> tuple[IdentityRecord, ...]:
        """Return all identities, the built-in owner first."""
        return (await self._call(subjects.LIST_IDENTITIES, messages.ListIdentities())).identities

    async def create_identity(
        self, id: str, type: IdentityType = "collaborator", display_name: str = ""
    ) -> IdentityRecord:
        """Create an active identity that may do nothing yet. Raises RemoteFault ``conflict`` if it exists, and
        ``invalid_request`` if the id or the type is not valid.
        """
        request = messages.CreateIdentity(
            id=id, identity_type=type, display_name=display_name, actor=self._actor
        )
        return (await self._call(subjects.CREATE_IDENTITY, request)).identity

    async def change_identity(
        self, id: str, status: IdentityStatus | None = None, *, display_name: str | None = None
    ) -> IdentityRecord:
        """Suspend, revoke, reactivate or rename an identity; what is None stays. Raises RemoteFault ``not_found``, and
        ``conflict`` for the owner and for an identity that was revoked.
        """
        request = messages.ChangeIdentity(id=id, status=status, display_name=display_name, actor=self._actor)
        return (await self._call(subjects.CHANGE_IDENTITY, request)).identity

    async def issue_token(
        self,
        identity: str,
        scope: TokenScope,
        *,
        label: str = "",
        expires: datetime | None = None,
        blocks: tuple[str, ...] | None = None,
    ) -> messages.TokenIssued:
        """Issue an access token. The reply has its text, which cannot be shown again. Raises RemoteFault ``not_found``
        if there is no such identity, ``conflict`` if it is not active, and ``invalid_request`` for the scope ``owner``
        of anyone but the owner.
        """
        request = messages.IssueToken(
            identity=identity, scope=scope, label=label, expires=expires, blocks=blocks, actor=self._actor
        )
        return await self._call(subjects.ISSUE_TOKEN, request)

    async def tokens(self, identity: str | None = None) -> tuple[messages.AccessToken, ...]:
        """Return the access tokens, the oldest first, also those that ended a short time ago."""
        return (await self._call(subjects.LIST_TOKENS, messages.ListTokens(identity=identity))).tokens

    async def revoke_token(self, id: str) -> messages.TokensRevoked:
        """Revoke an access token. ``id`` may be any unique beginning of the id. Raises RemoteFault ``not_found``, and
        ``conflict`` if several ids begin so.
        """
        return await self._call(subjects.REVOKE_TOKEN, messages.RevokeToken(id=id, actor=self._actor))

    async def rotate_key(self) -> messages.TokensRevoked:
        """Replace the key of access tokens, which ends all of them."""
        return await self._call(subjects.ROTATE_KEY, messages.RotateKey(actor=self._actor))

    async def check(self, identity: str, resource: str, action: str) -> messages.AccessChecked:
        """Ask the policies whether an identity may do something."""
        request = messages.CheckAccess(identity=identity, resource=resource, action=action)
        return await self._call(subjects.CHECK_ACCESS, request)

    async def policies(self, subject: str | None = None) -> messages.PolicyList:
        """Return the policies; with ``subject`` those about it."""
        return await self._call(subjects.LIST_POLICIES, messages.ListPolicies(subject=subject))

    async def grant(self, policy: Policy) -> messages.PolicyView:
        """Add a policy. Raises RemoteFault ``invalid_request`` if it would never apply, ``not_found`` if its subject
        is no identity, and ``conflict`` if its id is in use or its subject was revoked.
        """
        return await self._call(subjects.GRANT_ACCESS, messages.GrantAccess(policy=policy, actor=self._actor))

    async def revoke(self, id: str) -> messages.PolicyView:
        """Remove a policy. Raises RemoteFault ``not_found``."""
        return await self._call(subjects.REVOKE_ACCESS, messages.RevokeAccess(id=id, actor=self._actor))

    async def passkeys(self, identity: str | None = None) -> tuple[Passkey, ...]:
        """Return the passkeys, the oldest first; with ``identity`` only its own."""
        request = messages.ListPasskeys(identity=identity)
        return (await self._call(subjects.LIST_PASSKEYS, request)).passkeys

    async def remove_passkey(self, id: str) -> messages.PasskeysRemoved:
        """Remove a passkey and end the sessions that it opened, with the passkeys that were registered in them. Raises
        RemoteFault ``not_found``.
        """
        return await self._call(subjects.REMOVE_PASSKEY, messages.RemovePasskey(id=id, actor=self._actor))

    async def start_pairing(
        self,
        identity: str = OWNER,
        scope: TokenScope = TokenScope.OWNER,
        *,
        label: str = "",
        is_local: bool = False,
    ) -> messages.PairingStarted:
        """Return a code that lets a browser or a program in once. Raises RemoteFault ``rate_limited`` while too many
        codes wait, and otherwise as ``issue_token`` does.
        """
        request = messages.StartPairing(
            identity=identity, scope=scope, label=label, is_local=is_local, actor=self._actor
        )
        return await self._call(subjects.START_PAIRING, request)

    async def start_linking(self, channel: str) -> messages.PairingStarted:
        """Return a code that links whoever sends it to the account of a channel. Raises RemoteFault ``rate_limited``
        while too many codes wait.
        """
        request = linked_senders.StartLinking(channel=channel, actor=self._actor)
        return await self._call(subjects.START_LINKING, request)

    async def senders(self, channel: str) -> tuple[linked_senders.LinkedSender, ...]:
        """Return the linked senders of a channel, the oldest first."""
        request = linked_senders.ListLinkedSenders(channel=channel)
        return (await self._call(subjects.LIST_SENDERS, request)).senders

    async def unlink_sender(self, channel: str, sender: str) -> None:
        """Remove a linked sender of a channel. Raises RemoteFault ``not_found``."""
        request = linked_senders.UnlinkSender(channel=channel, sender=sender, actor=self._actor)
        await self._call(subjects.UNLINK_SENDER, request)

    async def cancel_pairings(self) -> int:
        """End all pairing codes that wait, and return their number."""
        request = messages.CancelPairings(actor=self._actor)
        return (await self._call(subjects.CANCEL_PAIRINGS, request)).codes

    async def _call(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        try:
            return await self._bus.call(endpoint, request, timeout=self._timeout)
        except RemoteFault:
            raise
        except BusError as error:
            raise Unavailable(
                f"No gateway answers: {error}", hint="Start one with `trunkline up`, or read its log."
            ) from error
