"""The presence of the platform in one channel: tells the owner when it begins and stops to serve the channel."""

import logging
from datetime import datetime, timedelta
from typing import Literal

import anyio
import msgspec

from trunkline._util.local_time import format_local_time
from trunkline.contracts.channels.owner_notice import OwnerNotice
from trunkline.contracts.channels.records import ChannelRecords, RecordChanged
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.sentences.catalogue import Sentence
from trunkline.errors import Unavailable
from trunkline.workers.channels.account_lease import AccountLease, LeaseLost
from trunkline.workers.channels.notice_outbox import NoticeOutbox

log = logging.getLogger(__name__)

PRESENCE_KEY = "presence"
"""The key of the record, and the name of the lease of the process that tells."""

SEEN_SECONDS = 10.0
"""Seconds between two notes that the platform serves the channel."""

RESTART = timedelta(minutes=1)
"""The time within which a worker that crashed is started again without a word."""

STOP_SECONDS = 5.0
"""Seconds that a stop waits until the owner is told of it."""

RETRY_SECONDS = 2.0

FAILURES = (Unavailable, RecordChanged, LeaseLost)


class PresenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of whether the platform serves a channel. ``serving`` was true ``at`` that time, and still is if no
    process was killed since. A worker that is ``restarting`` crashed in a process that goes on; ``stopped`` is a stop
    by a person or a service manager.
    """

    state: Literal["serving", "restarting", "stopped"]
    at: datetime


class Presence:
    """Tells the owner through one channel that the platform is online or offline, as notices of the kind ``online``.

    Guarantees: of several processes with this channel one tells. A start and a stop are each told once, not each
    restart of a worker or a channel. After a kill the next start tells since when the platform was offline.

    Not guaranteed: that a stop is told while the service of the channel does not answer; the next start tells it then.

    Args:
        run: The id of this worker, the same for each of its channels.
        lease_seconds: Seconds after which the next process tells instead of one that was killed.
    """

    def __init__(
        self, run: str, records: ChannelRecords, outbox: NoticeOutbox, *, lease_seconds: float = 10.0
    ) -> None:
        self._run = run
        self._records = records
        self._outbox = outbox
        self._lease = AccountLease(records, PRESENCE_KEY, seconds=lease_seconds)
        self._start: OwnerNotice | None = None
        self._is_start_told = False
        self._serving = False
        self._stopped = False
        self._noting = anyio.Lock()

    async def run(self) -> None:
        """Tell of the start, and note from then on that the platform serves the channel, until stopped or cancelled.
        Raises nothing.
        """
        while not self._stopped:
            try:
                await self._lease.run(self._serve)
            except FAILURES as error:
                log.info("whether the platform is online is told later: %s", error)
            await anyio.sleep(RETRY_SECONDS)

    async def stop(self) -> None:
        """Tell of the stop, for a limited time. Raises nothing."""
        self._stopped = True
        if not self._serving:  # another process serves the channel
            return
        at = utc_now()
        said = Sentence("notice.offline", {"time": format_local_time(at)})
        notice = self._notice("offline", said, at)
        with anyio.move_on_after(STOP_SECONDS):
            try:
                await self._note("stopped")
                await self._outbox.put(notice)
                await self._outbox.settle(notice)
            except FAILURES as error:
                log.info("that the platform stops is told later: %s", error)

    async def _serve(self) -> None:
        if self._stopped:
            return
        await self._begin()
        try:
            while not self._stopped:
                await self._note("serving")
                await anyio.sleep(SEEN_SECONDS)
        finally:
            self._serving = False
            await self._note_end()

    async def _begin(self) -> None:
        """Tell of the start, once: that the lease comes back after the bus was away is no start."""
        if self._start is None:  # now, because another process may have served the channel until now
            last, at = await self._records.get(PRESENCE_KEY, PresenceRecord), utc_now()
            self._start = self._notice("online", self._news(None if last is None else last.value, at), at)
        self._serving = True
        await self._note("serving")  # first, so that a start is not told twice if this process is killed now
        if self._stopped:
            return
        if self._start.sentences and not self._is_start_told:
            await self._outbox.put(self._start)
        self._is_start_told = True

    def _news(self, last: PresenceRecord | None, at: datetime) -> Sentence | None:
        """Return what the owner is told of a start ``at`` that time; None for nothing."""
        time = format_local_time(at)
        if last is None or last.state == "stopped":
            return Sentence("notice.online", {"time": time})
        if last.state == "restarting" and at - last.at < RESTART:
            return None
        return Sentence("notice.back", {"time": time, "since": format_local_time(last.at)})

    def _notice(self, event: str, said: Sentence | None, at: datetime) -> OwnerNotice:
        sentences = () if said is None else (said,)
        return OwnerNotice(id=f"{event}:{self._run}", kind="online", sentences=sentences, at=at)

    async def _note(self, state: Literal["serving", "restarting", "stopped"]) -> None:
        async with self._noting:  # a stop is noted last, also when a note before it takes long
            if state == "stopped" or not self._stopped:
                await self._records.put(PRESENCE_KEY, PresenceRecord(state=state, at=utc_now()))

    async def _note_end(self) -> None:
        """Note that this worker ends without a stop, so that the next one of this process says nothing."""
        with anyio.move_on_after(2.0, shield=True):
            try:
                await self._note("restarting")
            except Unavailable as error:
                log.info("the end of this worker is not noted: %s", error)
