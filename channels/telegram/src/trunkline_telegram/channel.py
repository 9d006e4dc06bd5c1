"""The channel ``telegram``."""

import logging
from typing import TYPE_CHECKING

import anyio

from trunkline import Unavailable
from trunkline.api.channel import AccountLease, Channel, Gateway, LeaseHolder
from trunkline_telegram.account_report import AccountReport
from trunkline_telegram.settings import TelegramSettings, account_of

if TYPE_CHECKING:  # the client is imported by the channel that runs, not by each process that lists channels
    from trunkline_telegram.session import TelegramSession

log = logging.getLogger(__name__)

ALERT_SECONDS = 5.0
"""Seconds that the bot takes at most to say that it stops."""


class TelegramChannel(Channel):
    """Talks with the owner through a bot.

    Guarantees: of all processes with the same bot and bus, one polls. A message is confirmed to Telegram when the
    gateway has it; an answer is shown once, whichever process is killed.

    Not guaranteed: that a lost answer of Telegram is found if more than a hundred messages arrived meanwhile; the post
    is then sent again.
    """

    name = "telegram"
    shows = (
        "Telegram on a phone: bold, italics, links, quotes, lists and code blocks of Markdown are drawn; headings are "
        "bold, and tables are text of one width. Keep lines and answers short."
    )

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings
        self._session: TelegramSession | None = None

    async def tell_owner(self, text: str) -> None:
        """Send the owner a text. Raises as ``Channel.tell_owner`` does."""
        if self._session is None:
            raise Unavailable("Telegram is not connected.")
        await self._session.notices.tell(text)

    async def run(self, gateway: Gateway) -> None:
        """Serve the bot while this process has its lease. Raises ConfigError for a token that is missing or refused."""
        account = account_of(self._settings.reveal_token())
        if not self._settings.owners:
            log.warning("channels.telegram.owners is empty: the bot tells people their id, and serves nobody")
        lease = AccountLease(gateway.records(), account, seconds=self._settings.lease_seconds)
        report = AccountReport(gateway.records(), account)

        async def waiting(holder: LeaseHolder) -> None:
            since = holder.since.isoformat(timespec="seconds")
            log.warning(
                "the bot of channels.telegram is served by process %d on %s since %s; this process waits",
                holder.pid,
                holder.host,
                since,
            )
            await report.waiting(f"process {holder.pid} on {holder.host}")

        await lease.run(lambda: self._serve(gateway, account), waiting=waiting)

    async def _serve(self, gateway: Gateway, account: str) -> None:
        from trunkline_telegram.bot_api import BotApi
        from trunkline_telegram.commands import COMMANDS
        from trunkline_telegram.session import TelegramSession

        async with BotApi(self._settings) as api:
            await api.prepare(COMMANDS)
            self._session = TelegramSession(self._settings, gateway, api, account)
            try:
                await self._alert("I am online.")
                await self._session.run()
            finally:
                with anyio.move_on_after(ALERT_SECONDS, shield=True):
                    await self._alert("I am offline.")
                self._session = None

    async def _alert(self, text: str) -> None:
        from telegram.error import TelegramError

        if self._settings.alerts:
            try:
                await self.tell_owner(text)
            except (Unavailable, TelegramError) as error:
                log.info("no alert is sent: %s", error)
