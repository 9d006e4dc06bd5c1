"""The operations about identities, tokens and permissions as one table, and the buckets behind them."""

from typing import Any

from trunkline.contracts.auth.linked_senders import (
    SENDER_BUCKET as SENDER_BUCKET,
)
from trunkline.contracts.auth.linked_senders import (
    LinkedSenderList,
    ListLinkedSenders,
    StartLinking,
    UnlinkSender,
)
from trunkline.contracts.auth.messages import (
    AccessChecked,
    CancelPairings,
    ChangeIdentity,
    CheckAccess,
    CreateIdentity,
    GrantAccess,
    IdentityList,
    IdentityView,
    IssueToken,
    ListIdentities,
    ListPasskeys,
    ListPolicies,
    ListTokens,
    PairingsCancelled,
    PairingStarted,
    PasskeyList,
    PasskeysRemoved,
    PolicyList,
    PolicyView,
    RemovePasskey,
    RevokeAccess,
    RevokeToken,
    RotateKey,
    StartPairing,
    TokenIssued,
    TokenList,
    TokensRevoked,
)
from trunkline.contracts.auth.operation import AuthOperation, auth_operation
from trunkline.contracts.auth.pairing_codes import PendingPairings
from trunkline.contracts.auth.passkeys import CHALLENGE_SECONDS, PasskeyRecord, UsedChallenge
from trunkline.contracts.auth.tokens import AccessTokenRecord, TokensChanged
from trunkline_bus import BucketSpec, Subject, Topic

LIST_IDENTITIES = auth_operation(
    "identities.list", ListIdentities, IdentityList, "All identities.", changes=False, tools=True
)
CREATE_IDENTITY = auth_operation(
    "identities.create", CreateIdentity, IdentityView, "Create an identity.", tools=True
)
CHANGE_IDENTITY = auth_operation(
    "identities.change", ChangeIdentity, IdentityView, "Suspend, revoke, reactivate or rename an identity."
)
ISSUE_TOKEN = auth_operation("tokens.issue", IssueToken, TokenIssued, "Issue an access token.")
LIST_TOKENS = auth_operation(
    "tokens.list", ListTokens, TokenList, "The access tokens.", changes=False, tools=True
)
REVOKE_TOKEN = auth_operation("tokens.revoke", RevokeToken, TokensRevoked, "Revoke an access token.")
ROTATE_KEY = auth_operation(
    "tokens.rotate-key", RotateKey, TokensRevoked, "Replace the key of access tokens, which ends all of them."
)
CHECK_ACCESS = auth_operation(
    "check", CheckAccess, AccessChecked, "Whether an identity may do something.", changes=False, tools=True
)
LIST_POLICIES = auth_operation(
    "policies.list", ListPolicies, PolicyList, "The owner's policies.", changes=False, tools=True
)
GRANT_ACCESS = auth_operation("policies.grant", GrantAccess, PolicyView, "Add a policy.", tools=True)
REVOKE_ACCESS = auth_operation("policies.revoke", RevokeAccess, PolicyView, "Remove a policy.", tools=True)
START_PAIRING = auth_operation(
    "pairing.start",
    StartPairing,
    PairingStarted,
    "Return a code by which a browser or a program is let in once.",
)
CANCEL_PAIRINGS = auth_operation(
    "pairing.cancel", CancelPairings, PairingsCancelled, "End all pairing codes that wait."
)
START_LINKING = auth_operation(
    "senders.pair",
    StartLinking,
    PairingStarted,
    "Return a code that links whoever sends it to the account of a channel.",
)
LIST_SENDERS = auth_operation(
    "senders.list",
    ListLinkedSenders,
    LinkedSenderList,
    "The people of a chat service who are the owner.",
    changes=False,
)
UNLINK_SENDER = auth_operation(
    "senders.unlink", UnlinkSender, LinkedSenderList, "Remove a person of a chat service who is the owner."
)
LIST_PASSKEYS = auth_operation("passkeys.list", ListPasskeys, PasskeyList, "The passkeys.", changes=False)
REMOVE_PASSKEY = auth_operation(
    "passkeys.remove", RemovePasskey, PasskeysRemoved, "Remove a passkey and end its sessions."
)

AUTH_OPERATIONS: tuple[AuthOperation[Any, Any], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, AuthOperation)
)
"""All operations about identities, tokens and permissions."""

TOKEN_BUCKET: BucketSpec[AccessTokenRecord] = BucketSpec(
    name="tokens",
    payload=AccessTokenRecord,
    max_bytes=16 * 1024 * 1024,
    description="Access tokens, by id: a keyed hash, the identity and the scope of each",
)
PAIRING_BUCKET: BucketSpec[PendingPairings] = BucketSpec(
    name="pairings",
    payload=PendingPairings,
    ttl=3_600.0,
    max_bytes=1024 * 1024,
    description="The pairing codes that wait, as keyed hashes, and the number of wrong attempts",
)
PASSKEY_BUCKET: BucketSpec[PasskeyRecord] = BucketSpec(
    name="passkeys",
    payload=PasskeyRecord,
    max_bytes=4 * 1024 * 1024,
    description="Passkeys, by id: the public key, the identity and the scope of each",
)
PASSKEY_CHALLENGE_BUCKET: BucketSpec[UsedChallenge] = BucketSpec(
    name="passkey-challenges",
    payload=UsedChallenge,
    ttl=CHALLENGE_SECONDS,
    max_bytes=4 * 1024 * 1024,
    description="The challenges of passkeys that were answered, as hashes",
)

TOKENS_CHANGED: Topic[TokensChanged] = Topic(
    name="token changes", subject=Subject("trunkline.evt.auth.tokens.changed"), payload=TokensChanged,
    doc="Access tokens were issued, ended or renewed. Whoever accepts access tokens reads them again.",
)  # fmt: skip
