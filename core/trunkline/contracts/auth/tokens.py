"""Access tokens at rest. A record has a keyed hash of its token and never the token itself."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from trunkline.contracts.auth.scopes import TokenScope
from trunkline_bus import Payload

TokenKind = Literal["bearer", "session"]
"""A bearer token is presented in a header, a session in the cookie of a browser."""

TokenEnd = Literal["revoked", "signed_out"]

TOKEN_PREFIX = "tl_"
"""The beginning of every access token, by which scanners of secrets recognise it."""

DAY_SECONDS = 86_400.0
SESSION_SECONDS = 30 * DAY_SECONDS
"""Seconds for which a session lives without use."""

PAIRED_SECONDS = 90 * DAY_SECONDS
"""Seconds for which a program's token of a pairing code lives without use."""

ROTATION_GRACE = timedelta(seconds=60)
"""The time for which the previous token of a session counts after its browser presented the present one, because other
tabs have requests under way."""


class AccessTokenRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An access token: who presents it, what it permits, and until when.

    ``mac`` is the HMAC-SHA256 of the token, in hexadecimal digits, with the key in the home (``runtime/auth``).
    ``expires`` is None for a token that does not expire. ``blocks`` restricts the token to these blocks; None means no
    restriction. ``ended`` is set when the token was revoked or its person signed out; the record is then kept for a
    while for lists and for gateways that were down. ``previous`` is the mac of the session before its last rotation at
    ``rotated``. ``confirmed`` is when a browser first presented the token that it got then; None if that has not
    happened. ``passkey`` is the one that opened the session, "" for other tokens. ``paired`` marks a program's token of
    a pairing code, which lives on while it is used.
    """

    id: str
    identity: str
    scope: TokenScope
    kind: TokenKind
    mac: str
    label: str = ""
    created: datetime
    created_by: str
    expires: datetime | None = None
    blocks: tuple[str, ...] | None = None
    ended: TokenEnd | None = None
    ended_at: datetime | None = None
    previous: str = ""
    rotated: datetime | None = None
    confirmed: datetime | None = None
    passkey: str = ""
    paired: bool = False

    def is_valid(self, now: datetime) -> bool:
        """Report whether the token has not ended and not expired."""
        return self.ended is None and (self.expires is None or now < self.expires)

    def is_confirmed_by(self, mac: str) -> bool:
        """Report whether this is the mac of the present token, which no browser has presented since the rotation."""
        return mac == self.mac and bool(self.previous) and self.confirmed is None

    def is_outdated(self, mac: str, now: datetime) -> bool:
        """Report whether this is the mac of the previous token, and the browser has the present one: only a copy of
        the earlier cookie is left to present it.
        """
        return mac == self.previous and self.confirmed is not None and now > self.confirmed + ROTATION_GRACE


class TokensChanged(Payload, frozen=True, kw_only=True, tag="auth.tokens-changed.v1"):
    """The records of these access tokens changed."""

    ids: tuple[str, ...]
