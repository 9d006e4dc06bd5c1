"""The channel ``discord``."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline.api.channel import AccountReport, AccountSession, ChatChannel, Gateway
from trunkline_discord.settings import DiscordSettings, account_of

log = logging.getLogger(__name__)


class DiscordChannel(ChatChannel):
    """Talks with the owner through a bot.

    Guarantees: of all processes with the same bot and bus, one is connected. A message counts as seen when the gateway
    has it, and what was written while no process was connected is read afterwards; an answer is shown once, whichever
    process is killed.

    Not guaranteed: that a message is read which was written more than a day before the bot connects again, or after 500
    others in the same channel while it was not connected.
    """

    name = "discord"
    shows = (
        "Discord: bold, italics, links, quotes, lists and code blocks of Markdown are drawn; headings are bold, and "
        "tables are text of one width. A message has 2000 characters, so keep answers short."
    )

    def __init__(self, settings: DiscordSettings) -> None:
        super().__init__(label="the Discord bot", lease_seconds=settings.lease_seconds)
        self._settings = settings

    def account(self) -> str:
        """Return the bot's user id. Raises ConfigError for a token that is missing or has not the form of one."""
        if not self._settings.owners:
            log.warning("channels.discord.owners is empty: the bot tells people their id, and serves nobody")
        return account_of(self._settings.reveal_token())

    @asynccontextmanager
    async def open_session(
        self, gateway: Gateway, account: str, report: AccountReport
    ) -> AsyncIterator[AccountSession]:
        """Sign in. Raises ConfigError for a token or a connection that Discord refuses."""
        # imported by the channel that runs, not by each process that lists channels
        from trunkline_discord.bot import DiscordBot
        from trunkline_discord.session import DiscordSession

        async with DiscordBot(self._settings, gateway.sentences) as bot:
            yield DiscordSession(self._settings, gateway, bot, account, report)
