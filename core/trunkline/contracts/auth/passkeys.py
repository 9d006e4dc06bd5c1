"""Passkeys at rest, and as people see them. A passkey is a public key by which its holder signs in again."""

import hashlib
from datetime import datetime

import msgspec

from trunkline.contracts.auth.scopes import TokenScope
from trunkline_bus import Payload

CHALLENGE_SECONDS = 300.0
"""Seconds for which a challenge can be answered."""

MOST_PASSKEYS = 20
"""The largest number of passkeys of one identity."""


class PasskeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passkey: whose it is, what a session that it opens permits, and how its signatures are checked.

    ``credential`` is the authenticator's name of it, ``public_key`` its key in COSE form, and ``counter`` the number of
    signatures that the authenticator counted, 0 if it does not count. ``host`` is where it can be used. ``token`` is
    the session that registered it. ``mac`` is a keyed hash of all of this (``runtime/auth``): without the key of the
    home nobody can add a passkey or give one another identity.
    """

    id: str
    identity: str
    scope: TokenScope
    credential: bytes
    public_key: bytes
    host: str
    token: str
    created: datetime
    counter: int = 0
    label: str = ""
    blocks: tuple[str, ...] | None = None
    used: datetime | None = None
    mac: str = ""


class Passkey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passkey as people see it, without its key. ``used`` is the time of the last sign-in."""

    id: str
    identity: str
    scope: TokenScope
    host: str
    created: datetime
    label: str = ""
    blocks: tuple[str, ...] | None = None
    used: datetime | None = None


class UsedChallenge(Payload, frozen=True, kw_only=True, tag="auth.passkey-challenge.v1"):
    """A challenge was answered, rightly or not. The key of the record is a hash of the challenge."""


def passkey_id(credential: bytes) -> str:
    """Return the id of a passkey by the authenticator's name of it, so that it is registered once only."""
    return f"pk_{hashlib.sha256(credential).hexdigest()[:20]}"


def passkey_view(record: PasskeyRecord) -> Passkey:
    """Return a passkey as people see it."""
    return Passkey(**{name: getattr(record, name) for name in Passkey.__struct_fields__})
