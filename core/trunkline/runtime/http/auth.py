"""Authentication over HTTP: the bearer token of this home, then the plugins' authenticators. Any failure denies access.

The token is created at the first start and is never printed or logged. Only the owner can read its file.
"""

import hmac
import logging
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trunkline.contracts.gateway.access import OWNER, Authenticator, Identity
from trunkline.errors import StorageError
from trunkline.home.paths import make_folder, storage_errors
from trunkline.plugins.ownership import OwnedItem

log = logging.getLogger(__name__)

CREDENTIALS = ("authorization", "x-api-key")
SHORTEST = 16


def load_token(file: Path) -> str:
    """Return the token of a home; create it if there is none.

    Raises:
      StorageError: the file cannot be read or written, or its content is too short for a token.
    """
    make_folder(file.parent)
    with storage_errors(file):
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return _read(file)
        token = secrets.token_urlsafe(32)
        with os.fdopen(descriptor, "w", encoding="ascii") as writer:
            writer.write(token + "\n")
            writer.flush()
            os.fsync(descriptor)
    return token


def _read(file: Path) -> str:
    if file.stat().st_mode & 0o077:
        log.warning("the token file %s could be read by others; it is now for its owner only", file)
        file.chmod(0o600)
    token = file.read_text(encoding="utf-8", errors="replace").strip()
    if len(token) < SHORTEST:
        raise StorageError(
            f"The token in {file} is shorter than {SHORTEST} characters.",
            hint="Delete the file; the next start makes a new one.",
        )
    return token


class HttpAuth:
    """Identifies the sender of a request by its headers."""

    def __init__(self, token: str, authenticators: Iterable[OwnedItem[Authenticator]]) -> None:
        self._token = token.encode()
        self._authenticators = tuple(authenticators)

    async def identify(self, headers: Sequence[tuple[str, str]]) -> Identity | None:
        """Return the identity for lower-case headers; None when there is none, or when the headers are
        ambiguous."""
        if sum(name in CREDENTIALS for name, _ in headers) > 1:
            return None  # ambiguous: several credentials
        given = dict(headers)
        if self._is_token(given):
            return OWNER
        return await self._ask_plugins(given)

    def _is_token(self, headers: Mapping[str, str]) -> bool:
        presented = _presented(headers).encode("utf-8", "surrogateescape")
        return hmac.compare_digest(presented, self._token)

    async def _ask_plugins(self, headers: Mapping[str, str]) -> Identity | None:
        for owned in self._authenticators:
            try:
                identity = await owned.item(headers)
            except Exception as error:
                log.warning(
                    "the authenticator of plugin %s refused or failed: %s", owned.owner, type(error).__name__
                )
                return None
            if identity is not None:
                return identity
        return None


def _presented(headers: Mapping[str, str]) -> str:
    """Return the token in a request, which carries at most one credential; "" when there is none."""
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key", "")
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
