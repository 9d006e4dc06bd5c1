"""The section ``[channels.telegram]`` of ``trunkline.toml``."""

import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from trunkline import ConfigError, Secret

BOT_TOKEN = Secret(env="TELEGRAM_BOT_TOKEN")
API_URL = "https://api.telegram.org"

_TOKEN = re.compile(r"(?P<account>[0-9]{1,20}):[A-Za-z0-9_-]{20,100}")

UserId = Annotated[int, msgspec.Meta(ge=1)]


class TelegramSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.telegram]``. ``token`` is the bot's token, by default in the variable ``TELEGRAM_BOT_TOKEN``.

    ``owners`` are Telegram user ids of the owner. The bot serves them and whoever ``trunkline channels pair telegram``
    has linked, and nobody else. ``groups`` permits the owner to talk with the bot in groups, by a mention or a reply.
    ``block`` is the block of a new conversation.

    ``edit_seconds`` is the time between two edits of an answer that grows; Telegram permits about one in a second.
    ``poll_seconds`` is how long a request for messages waits. ``lease_seconds`` is the time after which another
    process takes over from one that was killed. ``api_url`` is the address of Telegram, or of your own Bot API server.

    With ``webhook_url`` Telegram sends messages to this public address, instead of being asked for them. A reverse
    proxy with TLS passes them on to ``listen``.
    """

    token: Secret | None = None
    owners: tuple[UserId, ...] = ()
    groups: bool = True
    block: str | None = None
    edit_seconds: Annotated[float, msgspec.Meta(ge=0.02, le=60)] = 1.5
    poll_seconds: Annotated[int, msgspec.Meta(ge=0, le=50)] = 30
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10
    api_url: str = API_URL
    webhook_url: str = ""
    listen: Annotated[str, msgspec.Meta(pattern=r"^(\[[0-9a-f:.]+\]|[^:\s]+):[0-9]{1,5}$")] = "127.0.0.1:8443"

    def __post_init__(self) -> None:
        url = urlsplit(self.api_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.username:
            raise ConfigError(
                "channels.telegram.api_url is no address of a server.",
                hint=f'Remove it to use Telegram itself, or write api_url = "{API_URL}".',
            )

        webhook = urlsplit(self.webhook_url)
        if self.webhook_url and (webhook.scheme != "https" or not webhook.hostname or webhook.username):
            raise ConfigError(
                "channels.telegram.webhook_url is no public address with https.",
                hint='Write it as webhook_url = "https://bot.example.org/telegram", or remove it to poll.',
            )

    def reveal_token(self) -> str:
        """Return the bot's token.

        Raises:
            ConfigError: there is no token, or it does not have the form of one. The error does not contain it.
        """
        reference = self.token or BOT_TOKEN
        if not reference.is_set():
            raise ConfigError(
                f"channels.telegram.token: the environment variable {reference.env} with the bot's token is not set.",
                hint="Ask @BotFather in Telegram for a token, set the variable, and start again.",
            )
        token = reference.reveal().strip()
        if _TOKEN.fullmatch(token) is None:
            raise ConfigError(
                f"channels.telegram.token: the value of {reference.env} is not a token of a bot.",
                hint="Copy the whole token from @BotFather, such as 123456:ABC-DEF….",
            )
        return token


def account_of(token: str) -> str:
    """Return the bot's id, which is the part of a token that is not secret."""
    return token.partition(":")[0]
