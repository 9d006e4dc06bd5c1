"""The lease of an account: of all processes that run a channel, one talks to the service with one account."""

import logging
import os
import platform
from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio
import msgspec

from trunkline.contracts.channels.records import ChannelRecords, RecordChanged
from trunkline.contracts.conversations.messages import utc_now
from trunkline.errors import TrunklineError, Unavailable
from trunkline_bus import new_id
from trunkline_bus.task_group import background_tasks

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
"""Seconds after which the lease of a killed process ends."""

REPORT_SECONDS = 60.0
"""Seconds between two reports of who waits."""

RENEWALS = 4
"""How often a lease is renewed in its duration."""


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a lease. ``id`` is new in each run."""

    id: str
    host: str
    pid: int
    since: datetime


class LeaseLost(TrunklineError):
    """The lease could not be renewed in time, so another process may talk to the service now."""


class AccountLease:
    """The right to talk to a service with one account, for example one bot token.

    Guarantees: the body of one process runs at a time, if the clocks of the hosts run equally fast. It is cancelled
    before the lease ends. A body that ends gives the lease back at once; the lease of a killed process ends after
    ``seconds``.

    Not guaranteed: that a request of the former holder, which is on its way when it is killed, is refused by the
    service. Write what you are about to do into a record first (``DeliveryLedger`` does): the revision is the fence.

    Args:
        account: A word of a-z, 0-9, ``-`` and ``_`` that all processes with this account share.
        seconds: The duration of the lease: whole seconds, at least 1.
    """

    def __init__(self, records: ChannelRecords, account: str, *, seconds: float = LEASE_SECONDS) -> None:
        self._records = records
        self._key = f"lease.{account}"
        self._seconds = seconds

    async def run(
        self,
        body: Callable[[], Awaitable[None]],
        *,
        waiting: Callable[[LeaseHolder], Awaitable[None]] | None = None,
    ) -> None:
        """Wait for the lease, then run ``body`` under it. ``waiting`` is called with the process that holds it, at once
        and then every minute.

        Raises:
            LeaseLost: the lease could not be renewed; ``body`` was cancelled.
            Unavailable: the bus does not answer while waiting.
            Exception: what ``body`` raises.
        """
        renewal = await self._acquire(waiting)
        try:
            async with background_tasks() as tasks:

                async def renew() -> None:
                    await renewal.run()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(renew)
                await body()
        finally:
            if not renewal.lost:
                await self._give_back(renewal.revision)
        if renewal.lost:
            raise LeaseLost(
                "The lease of this account could not be renewed, so this process stops talking to the service.",
                hint="If two installations use one account, give each its own.",
            )

    async def _acquire(self, waiting: Callable[[LeaseHolder], Awaitable[None]] | None) -> "_Renewal":
        mine = LeaseHolder(id=new_id("holder"), host=platform.node(), pid=os.getpid(), since=utc_now())
        told = float("-inf")
        while True:
            try:
                revision = await self._records.put(self._key, mine, revision=0, ttl=self._seconds)
                return _Renewal(self._records, self._key, mine, revision, self._seconds)
            except RecordChanged:
                holder = await self._records.get(self._key, LeaseHolder)
            due = anyio.current_time() >= told + REPORT_SECONDS
            if holder is not None and due and waiting is not None:
                told = anyio.current_time()
                await waiting(holder.value)
            await anyio.sleep(min(1.0, self._seconds / RENEWALS))

    async def _give_back(self, revision: int) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2.0, shield=True):
            try:
                await self._records.delete(self._key, revision=revision)
            except (RecordChanged, Unavailable) as error:
                log.info("the lease %s ends by itself: %s", self._key, error)


class _Renewal:
    """Renews a lease until that fails for so long that the lease may end. ``lost`` reports whether it has failed."""

    def __init__(
        self, records: ChannelRecords, key: str, mine: LeaseHolder, revision: int, seconds: float
    ) -> None:
        self.revision = revision
        self.lost = False
        self._records = records
        self._key = key
        self._mine = mine
        self._seconds = seconds

    async def run(self) -> None:
        """Return when the lease is lost."""
        await self._renew()
        self.lost = True

    async def _renew(self) -> None:
        pause = self._seconds / RENEWALS
        ends = anyio.current_time() + self._seconds
        while True:
            await anyio.sleep(pause)
            asked = anyio.current_time()
            # Also a late attempt gets some time: it succeeds only if no other process has had the lease meanwhile.
            with anyio.move_on_after(max(ends - pause - asked, pause / 2)):
                try:
                    self.revision = await self._records.put(
                        self._key, self._mine, revision=self.revision, ttl=self._seconds
                    )
                    ends = asked + self._seconds
                    continue
                except RecordChanged:
                    return
                except Unavailable as error:
                    log.warning("the lease %s was not renewed: %s", self._key, error)
            if anyio.current_time() >= ends - pause:
                return
