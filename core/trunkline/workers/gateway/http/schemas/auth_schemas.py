"""The schemas of signing in, identities and access tokens."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from trunkline.contracts.auth.identity import IdentityRecord, IdentityStatus, IdentityType
from trunkline.contracts.auth.messages import AccessToken
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class PairRequest(In, frozen=True, kw_only=True):
    """A code of ``trunkline pair``, and the form in which the caller gets its token: ``cookie`` for a browser, or
    ``bearer`` in the reply. ``label`` names the browser or program in the list of tokens.
    """

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    kind: Literal["cookie", "bearer"] = msgspec.field(default="bearer", name="as")
    label: str = ""


class PairReply(Out, frozen=True, kw_only=True):
    """The identity that is signed in. ``token`` is only in the reply to ``as: bearer``, and is shown once. It works
    until ``expires``, which moves on when the program asks ``/api/me``.
    """

    identity: str
    scope: str
    expires: datetime | None = None
    token: str | None = None


class Me(Out, frozen=True, kw_only=True):
    """The caller. ``kind`` is the credential: ``home`` is the token of the home, ``bearer`` and ``session`` are access
    tokens, ``plugin`` is a credential of a plugin. ``blocks`` are the only blocks that the token reaches.
    """

    id: str
    type: str
    display_name: str
    scope: str
    kind: Literal["home", "bearer", "session", "plugin"]
    expires: datetime | None = None
    blocks: tuple[str, ...] | None = None


class SignedOut(Out, frozen=True, kw_only=True):
    """The end of an access token, if there was one. The token of the home cannot be signed out."""

    signed_out: bool


class NewIdentity(In, frozen=True, kw_only=True):
    """A person or program to let in. Nobody but the built-in owner has the type ``owner``."""

    id: str
    type: IdentityType = "collaborator"
    display_name: str = ""


class IdentityChanges(In, frozen=True, kw_only=True):
    """Changes of an identity. What is not named stays. ``revoked`` is final."""

    status: IdentityStatus | None = None
    display_name: str | None = None


class IdentityStates(Out, frozen=True, kw_only=True):
    """The identities, the owner first."""

    identities: tuple[IdentityRecord, ...]


class TokenRequest(In, frozen=True, kw_only=True):
    """An access token to issue. Without ``expires`` it does not expire; ``blocks`` are the only blocks that it reaches,
    null for all that its identity may use.
    """

    identity: str
    scope: TokenScope = TokenScope.CHAT
    label: str = ""
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    blocks: tuple[str, ...] | None = None


class TokenStates(Out, frozen=True, kw_only=True):
    """The access tokens, the oldest first, also those that ended a short time ago."""

    tokens: tuple[AccessToken, ...]


class IssuedToken(Out, frozen=True, kw_only=True):
    """A new access token. ``text`` is what the caller presents. It is in this answer only, and stored nowhere."""

    token: AccessToken
    text: str


class RevokedToken(Out, frozen=True, kw_only=True):
    """The end of an access token, and the number of turns that it started and that are cancelled."""

    id: str
    turns: int
