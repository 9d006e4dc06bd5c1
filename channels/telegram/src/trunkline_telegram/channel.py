"""The channel ``telegram``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.api.channel import AccountReport, AccountSession, ChatChannel, Gateway, command_menu
from trunkline_telegram.retry_times import RetryTimes
from trunkline_telegram.settings import TelegramSettings, account_of


class TelegramChannel(ChatChannel):
    """Talks with the owner through a bot.

    Guarantees: of all processes with the same bot and bus, one polls. A message is confirmed to Telegram when the
    gateway has it; an answer is shown once, whichever process is killed.

    ``home`` is the home folder, in which ``trunkline doctor`` finds the listener of a webhook.

    Not guaranteed: that a lost answer of Telegram is found if more than a hundred messages arrived meanwhile; the post
    is then sent again.
    """

    name = "telegram"
    shows = (
        "Telegram on a phone: bold, italics, links, quotes, lists and code blocks of Markdown are drawn; headings are "
        "bold, and tables are text of one width. A link such as [Ulm](geo:48.4,9.99) also shows the place on a map. "
        "Keep lines and answers short."
    )

    def __init__(
        self, settings: TelegramSettings, times: RetryTimes | None = None, *, home: Path | None = None
    ) -> None:
        self._settings = settings
        self._home = home or Path()
        self._times = times or RetryTimes()
        super().__init__(
            label="the bot",
            lease_seconds=settings.lease_seconds,
            silent_seconds=self._times.silent,
        )

    def account(self) -> str:
        """Return the bot's id. Raises ConfigError for a token that is missing or has not the form of one."""
        return account_of(self._settings.reveal_token())

    @asynccontextmanager
    async def open_session(
        self, gateway: Gateway, account: str, report: AccountReport
    ) -> AsyncIterator[AccountSession]:
        """Sign in. Raises ConfigError for a token or an address that Telegram refuses."""
        # imported by the channel that runs, not by each process that lists channels
        from trunkline_telegram.bot_api import BotApi
        from trunkline_telegram.session import TelegramSession

        async with BotApi(self._settings) as api:
            await api.prepare(command_menu(gateway.sentences), self._settings.webhook_url)
            yield TelegramSession(self._settings, gateway, api, account, report, self._times, self._home)
