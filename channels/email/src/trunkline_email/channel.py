"""The channel ``email``."""

import logging
from typing import TYPE_CHECKING

from trunkline import Unavailable
from trunkline.api.channel import AccountLease, AccountReport, Channel, Gateway, LeaseHolder
from trunkline_email.settings import EmailSettings

if (
    TYPE_CHECKING
):  # the clients are imported by the channel that runs, not by each process that lists channels
    from trunkline_email.session import EmailSession

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
"""Seconds before the second attempt to reach a server or the gateway."""


class EmailChannel(Channel):
    """Talks with the owner through a mailbox.

    Guarantees: of all processes with the same mailbox and bus, one reads it. A mail is marked as read when the gateway
    has it; an answer is sent once, whichever process is killed. Only mails whose sender the receiving server confirms
    are heard.

    Not guaranteed: that a mail which was cut off while it was handed over is found, if its copy takes longer than
    ``settle_seconds`` to arrive in the mailbox; it is then sent again, with the same Message-ID.

    ``first_pause`` is the pause in seconds before the second attempt to reach a server or the gateway.
    """

    name = "email"
    shows = (
        "An e-mail: the whole answer comes as one mail, with Markdown drawn except for pictures. The person reads it "
        "later and answers once: say everything in one answer."
    )

    def __init__(self, settings: EmailSettings, *, first_pause: float = FIRST_PAUSE) -> None:
        self._settings = settings
        self._first_pause = first_pause
        self._session: EmailSession | None = None

    async def tell_owner(self, text: str) -> None:
        """Send the owner a text. Raises as ``Channel.tell_owner`` does."""
        if self._session is None:
            raise Unavailable("The mailbox is not connected.")
        await self._session.notices.tell(text)

    async def run(self, gateway: Gateway) -> None:
        """Serve the mailbox while this process has its lease. Raises ConfigError for settings that are missing, and if
        the server refuses the login.
        """
        from trunkline_email.session import EmailSession  # before the lease, because it takes a while

        self._settings.check()
        if not self._settings.owners or not self._settings.authentication_server:
            log.warning(
                "channels.email serves nobody: set owners and authentication_server in [channels.email]"
            )
        records, account = gateway.records(), self._settings.account
        lease = AccountLease(records, account, seconds=self._settings.lease_seconds)
        report = AccountReport(records, account, f"the mailbox {self._settings.address}")

        async def waiting(holder: LeaseHolder) -> None:
            since = holder.since.isoformat(timespec="seconds")
            log.warning(
                "the mailbox of channels.email is served by process %d on %s since %s; this process waits",
                holder.pid,
                holder.host,
                since,
            )
            await report.waiting(f"process {holder.pid} on {holder.host}")

        await lease.run(
            lambda: self._serve(EmailSession(self._settings, gateway, report, self._first_pause)),
            waiting=waiting,
        )

    async def _serve(self, session: "EmailSession") -> None:
        self._session = session
        try:
            await session.run()
        finally:
            self._session = None
