"""The section ``[channels.matrix]`` of ``trunkline.toml``."""

import hashlib
import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from trunkline import ConfigError, Secret

TOKEN = Secret(env="MATRIX_ACCESS_TOKEN")

_TOKEN = re.compile(r"[\x21-\x7e]{8,4096}")

UserId = Annotated[str, msgspec.Meta(pattern="^@[^:\\s/]{1,200}:[A-Za-z0-9.:\\[\\]-]{1,200}$")]


class MatrixSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.matrix]``. ``homeserver`` is the address of the account's homeserver, ``user`` the account's id, such
    as ``@agent:example.org``, and ``token`` its access token, by default in the variable ``MATRIX_ACCESS_TOKEN``.

    ``owners`` are the Matrix ids of the owner, besides those whom a pairing code links. The account opens a private
    room with each of them, and serves nobody else. ``mentions`` permits the owner to talk with it in rooms with other
    people, by a mention. ``block`` is the block of a new conversation.

    ``edit_seconds`` is the time between two edits of an answer that grows. A homeserver that limits more makes it
    wait. ``sync_seconds`` is the time for which a request waits for new messages. ``lease_seconds`` is the time after
    which another process takes over from one that was killed.
    """

    homeserver: str = ""
    user: UserId | None = None
    token: Secret | None = None
    owners: tuple[UserId, ...] = ()
    mentions: bool = True
    block: str | None = None
    edit_seconds: Annotated[float, msgspec.Meta(ge=0.02, le=60)] = 3.0
    sync_seconds: Annotated[int, msgspec.Meta(ge=1, le=60)] = 30
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10

    def __post_init__(self) -> None:
        url = urlsplit(self.homeserver)
        if self.homeserver and (
            url.scheme not in ("http", "https") or not url.hostname or url.query or url.username
        ):
            raise ConfigError(
                "channels.matrix.homeserver is no address of a server.",
                hint='Write it as homeserver = "https://matrix.example.org".',
            )

    @property
    def variable(self) -> str:
        """The environment variable that has the access token."""
        return (self.token or TOKEN).env

    def reveal_token(self) -> str:
        """Return the access token.

        Raises:
            ConfigError: there is no token, or it cannot be one. The error does not contain it.
        """
        reference = self.token or TOKEN
        if not reference.is_set():
            raise ConfigError(
                f"channels.matrix.token: the environment variable {reference.env} is not set.",
                hint="Sign in as the account once to get an access token, set the variable, and start again. "
                "docs/how-to/matrix.md shows how.",
            )
        token = reference.reveal().strip()
        if _TOKEN.fullmatch(token) is None:
            raise ConfigError(
                f"channels.matrix.token: the value of {reference.env} is not an access token.",
                hint="Copy the whole token, without spaces and line breaks.",
            )
        return token

    def account(self) -> str:
        """Return the account's name on the bus. It stays the same when the account gets another token.

        Raises:
            ConfigError: ``homeserver`` or ``user`` is missing.
        """
        if not self.homeserver or self.user is None:
            field, example = (
                ("user", "@agent:example.org") if self.homeserver else ("homeserver", "https://matrix.org")
            )
            raise ConfigError(
                f"channels.matrix.{field} is not set.",
                hint=f'Write {field} = "{example}" with the one of your account under [channels.matrix].',
            )
        return f"{word(self.user)[:40]}-{key(self.user)[:8]}"


def word(text: str) -> str:
    """Return a text as a word of a-z, 0-9 and ``-``. Different texts may become the same word."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def key(text: str) -> str:
    """Return a key for a text: 24 characters of a-z and 0-9."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
