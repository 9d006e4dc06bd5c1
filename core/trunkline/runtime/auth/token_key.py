"""The key with which access tokens are hashed. It is a file of the home, outside memory and outside the bus."""

import hashlib
import hmac
import logging
from pathlib import Path

from trunkline.errors import StorageError
from trunkline.home.secret_file import read_secret

log = logging.getLogger(__name__)

SESSION_COOKIE = "trunkline_session"
"""The beginning of the name of the cookie with the token of a session."""


class TokenKey:
    """Hashes tokens with the key in ``file``, which is read again when the file changes.

    While the file is missing or cannot be read, no token has a hash, so every access token is refused.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read: tuple[int, int, int] | None = None
        self._key = b""

    def mac(self, token: str) -> str | None:
        """Return the HMAC-SHA256 of a token in hexadecimal digits; None without a key. Raises nothing."""
        key = self._load()
        return (
            hmac.new(key, token.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
            if key
            else None
        )

    @property
    def session_cookie(self) -> str:
        """The name of the cookie with the token of a session. It depends on the key: browsers send a cookie to every
        port of a host, and a session of another home must not count as a second credential. Raises nothing.
        """
        mac = self.mac(SESSION_COOKIE)
        return SESSION_COOKIE if mac is None else f"{SESSION_COOKIE}_{mac[:8]}"

    def require_mac(self, token: str) -> str:
        """Return the hash of a token. Raises StorageError without a key."""
        mac = self.mac(token)
        if mac is None:
            raise StorageError(
                f"The key of access tokens in {self.file} cannot be read.",
                hint="Restart the gateway; if the file is missing, it makes a new one, and all tokens end.",
            )
        return mac

    def _load(self) -> bytes:
        try:
            found = self.file.stat()
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
            if state != self._read:
                self._key = read_secret(self.file).encode()
                self._read = state
        except (OSError, StorageError) as error:
            if self._read is not None or not self._key:
                log.warning("access tokens are refused, because their key cannot be read: %s", error)
            self._read, self._key = None, b""
        return self._key
