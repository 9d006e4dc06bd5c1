"""The channel ``slack``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline.api.channel import AccountReport, AccountSession, ChatChannel, Gateway
from trunkline_slack.settings import SlackSettings, account_of


class SlackChannel(ChatChannel):
    """Talks with the owner through a Slack app.

    Guarantees: of all processes with the same app and bus, one is connected. A message is confirmed to Slack when the
    gateway has it, and what was written while no process was connected is read afterwards; an answer is shown once,
    whichever process is killed.

    Not guaranteed: that a message is read which was written more than a day before the app connects again, or after 500
    others in the same channel while it was not connected; that a post is shown once which Slack shows only after it was
    looked for.
    """

    name = "slack"
    shows = (
        "Slack: bold, italics, links, quotes, lists and code blocks of Markdown are drawn; headings are bold, and "
        "tables are text of one width. A message has 4000 characters, so keep answers short."
    )

    def __init__(self, settings: SlackSettings) -> None:
        super().__init__(label="the Slack app", lease_seconds=settings.lease_seconds)
        self._settings = settings

    def account(self) -> str:
        """Return the bot's numbers. Raises ConfigError for a token that is missing or has not the form of one."""
        self._settings.reveal_app_token()
        return account_of(self._settings.reveal_bot_token())

    @asynccontextmanager
    async def open_session(
        self, gateway: Gateway, account: str, report: AccountReport
    ) -> AsyncIterator[AccountSession]:
        """Sign in. Raises ConfigError for a token or a permission that Slack refuses."""
        # imported by the channel that runs, not by each process that lists channels
        from trunkline_slack.bot import SlackBot
        from trunkline_slack.session import SlackSession

        async with SlackBot(self._settings) as bot:
            yield SlackSession(self._settings, gateway, bot, account, report)
