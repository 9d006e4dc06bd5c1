"""Authentication over HTTP: the token of this home, access tokens and sessions, then the plugins' authenticators. Any
failure denies access.

The token of the home is created at the first start and is never printed or logged. Only the owner can read its file.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import anyio
import msgspec

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import TOKEN_PREFIX
from trunkline.contracts.gateway.access import OWNER, Authenticator, Identity
from trunkline.plugins.ownership import OwnedItem
from trunkline.runtime.auth.token_registry import TokenRegistry

log = logging.getLogger(__name__)

CREDENTIALS = ("authorization", "x-api-key")


class HttpAuth:
    """Identifies the sender of a request by its headers. ``tokens`` are the access tokens; None accepts none.
    ``note_refusal`` is called for each request whose credential identifies nobody, ``note_token`` with each access
    token, whether or not it counts."""

    def __init__(
        self,
        token: str,
        authenticators: Iterable[OwnedItem[Authenticator]],
        tokens: TokenRegistry | None = None,
        note_refusal: Callable[[], Awaitable[None]] | None = None,
        note_token: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._note_refusal = note_refusal
        self._note_token = note_token
        self._token = token.encode()
        self._authenticators = tuple(authenticators)
        self._tokens = tokens

    async def run(self) -> None:
        """Follow the access tokens until cancelled. Until this runs, no access token identifies anybody."""
        if self._tokens is not None:
            await self._tokens.run()

    async def identify(self, headers: Sequence[tuple[str, str]]) -> Identity | None:
        """Return the identity for lower-case headers; None when there is none, or when the headers are ambiguous.

        The cookie of a session counts only for requests of the server's own pages.

        Raises:
            Unavailable: an access token cannot be checked now.
        """
        sessions = self.session_tokens(headers)
        presented = sum(name in CREDENTIALS for name, _ in headers) + len(sessions)
        identity = (
            await self._identify(headers, sessions) if presented <= 1 else None
        )  # several are ambiguous
        if identity is None and presented and self._note_refusal is not None:
            await self._note_refusal()
        return identity

    async def _identify(self, headers: Sequence[tuple[str, str]], sessions: Sequence[str]) -> Identity | None:
        given = dict(headers)
        if sessions:
            return await self._identify_token(sessions[0]) if is_own_origin(given) else None
        presented = _presented(given)
        if hmac.compare_digest(presented.encode("utf-8", "surrogateescape"), self._token):
            return OWNER
        if presented.startswith(TOKEN_PREFIX):
            return await self._identify_token(presented)
        return await self._ask_plugins(given)

    def session_tokens(self, headers: Sequence[tuple[str, str]]) -> list[str]:
        """Return the tokens of all session cookies of a request; other cookies of this host are no credentials."""
        if self._tokens is None:
            return []
        name = self._tokens.session_cookie
        pairs = [pair.strip() for key, value in headers if key == "cookie" for pair in value.split(";")]
        return [value for pair in pairs for key, _, value in [pair.partition("=")] if key == name]

    def ended(self, identity: Identity) -> anyio.Event:
        """Return an event that is set when the credential of a request does not count any more."""
        return anyio.Event() if self._tokens is None else self._tokens.ended(identity)

    async def _identify_token(self, token: str) -> Identity | None:
        if self._tokens is None:
            return None
        identity = await self._tokens.identify(token)
        if self._note_token is not None:
            await self._note_token(token)
        return identity

    async def _ask_plugins(self, headers: Mapping[str, str]) -> Identity | None:
        for owned in self._authenticators:
            try:
                identity = await owned.item(headers)
            except Exception as error:
                log.warning(
                    "the authenticator of plugin %s refused or failed: %s", owned.owner, type(error).__name__
                )
                return None
            if identity is not None and _is_reserved(identity):
                log.warning(
                    "plugin %s named somebody %r, which is a name of Trunkline's own",
                    owned.owner,
                    identity.id,
                )
                return None
            if identity is not None:
                admitted = self._tokens is None or await self._tokens.admits(identity)
                return _bounded(identity, owned.owner) if admitted else None
        return None


def _bounded(identity: Identity, plugin: str) -> Identity:
    """Return the identity that a plugin names, without the scope ``owner`` if it is not an owner. A route that asks for
    this scope alone would let that person in."""
    if identity.type == OWNER.type or not identity.may(TokenScope.OWNER):
        return identity
    log.warning("plugin %s gave %r the scope owner, which only an owner has", plugin, identity.id)
    return msgspec.structs.replace(identity, scope=TokenScope.OPERATE)


def _is_reserved(identity: Identity) -> bool:
    """Report whether an id means somebody else: the owner, a channel of the owner, or a group of policies. Whoever has
    such an id would be shown what the owner may see, and be permitted what a block may do."""
    if identity.id == OWNER.id:
        return identity.type != OWNER.type
    return identity.id in ("", "*") or identity.id.startswith(("channel:", "block:", "type:"))


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """Report whether the headers of a request show the server's own pages, or no browser, as the origin."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host", "")
    except ValueError:
        return False


def _presented(headers: Mapping[str, str]) -> str:
    """Return the token in a request, which carries at most one credential; "" when there is none."""
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key", "")
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
