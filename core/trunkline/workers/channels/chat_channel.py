"""A channel for a chat service: one process serves its account."""

import logging
from abc import abstractmethod
from contextlib import AbstractAsyncContextManager

from trunkline.contracts.channels.channel import Channel, Gateway
from trunkline.contracts.channels.owner_notice import OwnerNotice
from trunkline.errors import ConfigError, Unavailable
from trunkline.workers.channels.account_lease import AccountLease, LeaseHolder
from trunkline.workers.channels.account_report import AccountReport
from trunkline.workers.channels.account_session import AccountSession
from trunkline_bus.task_group import background_tasks

log = logging.getLogger(__name__)

SILENT_SECONDS = 90.0
"""Seconds within which a session hears of its service, also if nobody writes."""


class ChatChannel(Channel):
    """A channel that serves one account of a chat service.

    Guarantees: of all processes with the same account and bus, one has a session.

    Not guaranteed: what the session guarantees if another installation uses the account without this bus.

    Args:
        label: The account for people, such as "the bot".
        lease_seconds: Seconds after which another process takes over from one that was killed.
        silent_seconds: Seconds without a report after which the account counts as failing.
    """

    remembers_notices = True

    def __init__(self, *, label: str, lease_seconds: float, silent_seconds: float = SILENT_SECONDS) -> None:
        self._silent_seconds = silent_seconds
        self._label = label
        self._lease_seconds = lease_seconds
        self._session: AccountSession | None = None

    @abstractmethod
    def account(self) -> str:
        """Return the id of the account: a word of a-z, 0-9, ``-`` and ``_``.

        Raises:
            ConfigError: a setting that names the account is missing or wrong.
        """

    @abstractmethod
    def open_session(
        self, gateway: Gateway, account: str, report: AccountReport
    ) -> AbstractAsyncContextManager[AccountSession]:
        """Sign in, and yield a session that does not run yet.

        Raises:
            ConfigError: the service refuses the account.
            Exception: the service does not answer. The channel is started again.
        """

    async def tell_owner(self, text: str) -> None:
        """Send the owner a text. Raises as ``Channel.tell_owner`` does."""
        if self._session is None:
            raise Unavailable(f"The channel {self.name} is not connected.")
        await self._session.tell(text)

    async def tell(self, notice: OwnerNotice) -> None:
        """Send the owner a notice, once however often it is sent. Raises as ``Channel.tell_owner`` does."""
        if self._session is None:
            raise Unavailable(f"The channel {self.name} is not connected.")
        await self._session.tell(notice.text, notice.id)

    async def run(self, gateway: Gateway) -> None:
        """Serve the account while this process has its lease.

        Raises:
            ConfigError: as ``account`` and ``open_session``.
            LeaseLost: another process may serve the account now.
            Exception: what ``open_session`` and the session raise.
        """
        account = self.account()
        lease = AccountLease(gateway.records(), account, seconds=self._lease_seconds)
        report = AccountReport(gateway.records(), account, f"{self._label} {account}")

        async def waiting(holder: LeaseHolder) -> None:
            log.warning(
                "%s of channels.%s is served by process %d on %s since %s; this process waits",
                self._label,
                self.name,
                holder.pid,
                holder.host,
                holder.since.isoformat(timespec="seconds"),
            )
            await report.waiting(f"process {holder.pid} on {holder.host}")

        await lease.run(lambda: self._serve(gateway, account, report), waiting=waiting)

    async def _serve(self, gateway: Gateway, account: str, report: AccountReport) -> None:
        try:
            async with self.open_session(gateway, account, report) as session:
                await self._run_session(session, report)
        except ConfigError as refused:
            await report.failing(refused.sentence)
            raise

    async def _run_session(self, session: AccountSession, report: AccountReport) -> None:
        async def started() -> None:
            self._session = session

        try:
            async with background_tasks() as tasks:
                tasks.start_soon(report.watch, self._silent_seconds)
                await session.run(started=started)
        finally:
            self._session = None
