"""The section ``[channels.slack]`` of ``trunkline.toml``."""

import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from trunkline import ConfigError, Secret

BOT_TOKEN = Secret(env="SLACK_BOT_TOKEN")
APP_TOKEN = Secret(env="SLACK_APP_TOKEN")
API_URL = "https://slack.com/api/"

_BOT_TOKEN = re.compile(r"xoxb-(?P<account>\d{1,20}-\d{1,20})-[A-Za-z0-9]{10,}")
_APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9-]{20,}")

UserId = Annotated[str, msgspec.Meta(pattern="^[UW][A-Z0-9]{2,30}$")]


class SlackSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.slack]``. ``token`` is the bot's token, by default in the variable ``SLACK_BOT_TOKEN``, and
    ``app_token`` that of the app, by default in ``SLACK_APP_TOKEN``.

    ``owners`` are the Slack user ids of the owner, besides those whom a pairing code links. The bot serves nobody else.
    ``mentions`` permits the owner to talk with the bot in channels, by a mention. ``block`` is the block of a new
    conversation.

    ``edit_seconds`` is the time between two edits of an answer that grows; Slack permits about fifty in a minute.
    ``lease_seconds`` is the time after which another process takes over from one that was killed. ``api_url`` is the
    address of Slack's API.
    """

    token: Secret | None = None
    app_token: Secret | None = None
    owners: tuple[UserId, ...] = ()
    mentions: bool = True
    block: str | None = None
    edit_seconds: Annotated[float, msgspec.Meta(ge=0.02, le=60)] = 1.5
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10
    api_url: str = API_URL

    def __post_init__(self) -> None:
        url = urlsplit(self.api_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.username:
            raise ConfigError(
                "channels.slack.api_url is no address of a server.",
                hint=f'Remove it to use Slack itself, or write api_url = "{API_URL}".',
            )

    @property
    def bot_variable(self) -> str:
        """The environment variable that has the bot's token."""
        return (self.token or BOT_TOKEN).env

    @property
    def app_variable(self) -> str:
        """The environment variable that has the app's token."""
        return (self.app_token or APP_TOKEN).env

    def reveal_bot_token(self) -> str:
        """Return the bot's token.

        Raises:
            ConfigError: there is no token, or it does not have the form of one. The error does not contain it.
        """
        return _reveal(
            "token",
            self.token or BOT_TOKEN,
            _BOT_TOKEN,
            "xoxb-",
            "on the page OAuth & Permissions, as Bot User OAuth Token",
        )

    def reveal_app_token(self) -> str:
        """Return the app's token. Raises ConfigError as ``reveal_bot_token`` does."""
        return _reveal(
            "app_token",
            self.app_token or APP_TOKEN,
            _APP_TOKEN,
            "xapp-",
            "on the page Basic Information, under App-Level Tokens",
        )


def _reveal(field: str, reference: Secret, form: re.Pattern[str], prefix: str, place: str) -> str:
    if not reference.is_set():
        raise ConfigError(
            f"channels.slack.{field}: the environment variable {reference.env} is not set.",
            hint=f"The token that begins with {prefix} is at api.slack.com/apps in your app, {place}. Set the "
            "variable, and start again.",
        )
    token = reference.reveal().strip()
    if form.fullmatch(token) is None:
        raise ConfigError(
            f"channels.slack.{field}: the value of {reference.env} is not such a token.",
            hint=f"Copy the whole token that begins with {prefix}: it is at api.slack.com/apps in your app, {place}.",
        )
    return token


def account_of(token: str) -> str:
    """Return the numbers of the workspace and the bot, which are the part of a bot's token that is not secret."""
    found = _BOT_TOKEN.fullmatch(token)
    assert found is not None
    return found["account"]
