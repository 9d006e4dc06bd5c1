"""The section ``[channels.discord]`` of ``trunkline.toml``."""

import base64
import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from trunkline import ConfigError, Secret

BOT_TOKEN = Secret(env="DISCORD_BOT_TOKEN")
API_URL = "https://discord.com/api/v10"

_TOKEN = re.compile(r"(?P<account>[A-Za-z0-9_-]{18,40})\.[A-Za-z0-9_-]{4,10}\.[A-Za-z0-9_-]{20,100}")

UserId = Annotated[int, msgspec.Meta(ge=1)]


class DiscordSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.discord]``. ``token`` is the bot's token, by default in the variable ``DISCORD_BOT_TOKEN``.

    ``owners`` are the Discord user ids of the owner. The bot serves nobody else. ``servers`` permits the owner to talk
    with the bot in the channels and threads of servers, by a mention or a reply. ``block`` is the block of a new
    conversation.

    ``edit_seconds`` is the time between two edits of an answer that grows; Discord permits about one in a second.
    ``lease_seconds`` is the time after which another process takes over from one that was killed. ``api_url`` is the
    address of Discord's API.
    """

    token: Secret | None = None
    owners: tuple[UserId, ...] = ()
    servers: bool = True
    block: str | None = None
    edit_seconds: Annotated[float, msgspec.Meta(ge=0.02, le=60)] = 1.5
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10
    api_url: str = API_URL

    def __post_init__(self) -> None:
        url = urlsplit(self.api_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.username:
            raise ConfigError(
                "channels.discord.api_url is no address of a server.",
                hint=f'Remove it to use Discord itself, or write api_url = "{API_URL}".',
            )

    @property
    def variable(self) -> str:
        """The environment variable that has the bot's token."""
        return (self.token or BOT_TOKEN).env

    def reveal_token(self) -> str:
        """Return the bot's token.

        Raises:
            ConfigError: there is no token, or it does not have the form of one. The error does not contain it.
        """
        reference = self.token or BOT_TOKEN
        if not reference.is_set():
            raise ConfigError(
                f"channels.discord.token: the environment variable {reference.env} with the bot's token is not set.",
                hint="Copy the token from the page Bot of your application at discord.com/developers, set the "
                "variable, and start again.",
            )
        token = reference.reveal().strip()
        if _account(token) is None:
            raise ConfigError(
                f"channels.discord.token: the value of {reference.env} is not a token of a bot.",
                hint="Copy the whole token: three words, joined by dots.",
            )
        return token


def account_of(token: str) -> str:
    """Return the bot's user id, which is the part of a token that is not secret."""
    account = _account(token)
    assert account is not None
    return account


def _account(token: str) -> str | None:
    found = _TOKEN.fullmatch(token)
    if found is None:
        return None
    encoded = found["account"]
    try:
        account = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
    except ValueError:
        return None
    return account if account.isdigit() else None
