"""Pairing codes: short codes for people and long ones for links, and the record of those that wait."""

import secrets
from datetime import datetime

import msgspec

from trunkline.contracts.auth.scopes import TokenScope

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Digits and letters that nobody confuses when reading them aloud or from paper."""

CODE_LENGTH = 8
"""Characters of a short code: 39 bits, against five attempts."""

PAIRING_SECONDS, LINK_SECONDS = 600.0, 60.0
"""Seconds for which a short code, and a one-time link for this machine, can be used."""

MOST_PENDING, MOST_WRONG = 3, 5
"""The number of codes that wait at once, and of wrong attempts after which none of them counts any more."""


class PendingPairing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pairing code that waits, as a keyed hash, and the token that it will become."""

    mac: str
    identity: str
    scope: TokenScope
    expires: datetime
    label: str = ""
    is_local: bool = False
    by: str = ""


class PendingPairings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All codes that wait, in one record, so that taking one and counting wrong attempts is one step."""

    codes: tuple[PendingPairing, ...] = ()
    wrong: int = 0


def new_code() -> str:
    """Return a short code such as ``7KQ4-XM2P``."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    return f"{letters[: CODE_LENGTH // 2]}-{letters[CODE_LENGTH // 2 :]}"


def new_link_code() -> str:
    """Return a code for a link, which nobody types."""
    return secrets.token_urlsafe(32)


def is_short_code(text: str) -> bool:
    """Report whether a text has the form of a short code."""
    plain = "".join(text.upper().split()).replace("-", "")
    return len(plain) == CODE_LENGTH and set(plain) <= set(ALPHABET)


def normalize_code(text: str) -> str:
    """Return a code as it was made: people may write a short one in small letters, with spaces or without the dash."""
    if is_short_code(text):
        plain = "".join(text.upper().split()).replace("-", "")
        return f"{plain[: CODE_LENGTH // 2]}-{plain[CODE_LENGTH // 2 :]}"
    return text.strip()
