"""The public schemas of passkeys."""

from typing import Annotated, Any

import msgspec

from trunkline.contracts.auth.passkeys import Passkey
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class PasskeyOptions(Out, frozen=True):
    """The options that a page gives to ``navigator.credentials``, as WebAuthn's
    ``PublicKeyCredentialCreationOptionsJSON``, or ``PublicKeyCredentialRequestOptionsJSON`` for signing in. The
    challenge can be answered once, within five minutes.
    """

    public_key: dict[str, Any]


class NewPasskeyRequest(In, frozen=True, kw_only=True):
    """A passkey to register. ``challenge`` is that of the options, decoded; ``credential`` is the browser's
    ``RegistrationResponseJSON``. ``scope`` is what its sessions permit, null for that of this session.
    """

    challenge: Annotated[str, msgspec.Meta(max_length=200)]
    credential: dict[str, Any]
    label: Annotated[str, msgspec.Meta(max_length=100)] = ""
    scope: TokenScope | None = None


class PasskeySignIn(In, frozen=True, kw_only=True):
    """The answer to the options for signing in: their challenge, decoded, and the browser's
    ``AuthenticationResponseJSON``.
    """

    challenge: Annotated[str, msgspec.Meta(max_length=200)]
    credential: dict[str, Any]


class PasskeyStates(Out, frozen=True, kw_only=True):
    """The passkeys of the caller, the oldest first. ``current`` is the one that opened the session of the request."""

    passkeys: tuple[Passkey, ...]
    current: str = ""


class RemovedPasskey(Out, frozen=True, kw_only=True):
    """The number of passkeys that were removed, of sessions that ended with them, and of turns that are cancelled."""

    passkeys: int
    tokens: int = 0
    turns: int = 0
