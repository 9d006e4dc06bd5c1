"""The notices of one channel: each is stored before it is told, and told once at its time."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import anyio
import msgspec

from trunkline._util.text import printable
from trunkline.contracts.blocks.notice_preferences import NoticePreferences
from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.channels.owner_notice import NOTICE_PREFIX, KeptNotice, OwnerNotice
from trunkline.contracts.channels.records import ChannelRecord, ChannelRecords, RecordChanged
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline.errors import Unavailable
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

KEPT_SECONDS = 7 * 86_400.0
"""Seconds for which a notice is remembered, so that it is told once."""

GIVEN_UP = timedelta(days=1)
"""The time after which a channel that cannot tell a notice gives it up."""

FIRST_RETRY, RETRY_SECONDS = 1.0, 30.0
"""Seconds after which a notice that could not be told is tried again: doubled each time."""


POLL_SECONDS = 0.1


class NoticeOutbox:
    """Tells the owner through one channel.

    Guarantees: a notice is on disk when ``put`` returns. It is told at its time by the owner's preferences, also after
    a restart, and once: a channel with a delivery ledger finds out what a killed process told, and of another channel a
    notice is not repeated whose telling was interrupted.

    Not guaranteed: that a notice is told within ``GIVEN_UP`` while the channel cannot reach its owner.

    Args:
        others: Returns the records of another channel.
        preferences: Returns how the owner wants to be told; None while that is not known. Then notices are told at
            once, because they must not be lost, and none is passed.
        sentences: The sentences in the owner's language.
        retry_seconds: The longest time between two attempts.
    """

    def __init__(
        self,
        channel: Channel,
        records: ChannelRecords,
        others: Callable[[str], ChannelRecords],
        preferences: Callable[[], Awaitable[NoticePreferences | None]],
        sentences: Sentences = ENGLISH_SENTENCES,
        *,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._channel = channel
        self._records = records
        self._others = others
        self._preferences = preferences
        self._sentences = sentences
        self._backoff = Backoff(min(FIRST_RETRY, retry_seconds), retry_seconds)
        self._some = anyio.Event()

    async def put(self, notice: OwnerNotice) -> None:
        """Store a notice. The same notice may be put again.

        Raises:
            Unavailable: the bus does not answer. Put it again.
        """
        try:
            kept = KeptNotice(notice=notice)
            await self._records.put(notice_key(notice.id), kept, revision=0, ttl=KEPT_SECONDS)
        except RecordChanged:
            log.debug("the notice %s was stored before", notice.id)
        self._some.set()

    async def settle(self, notice: OwnerNotice) -> None:
        """Wait until a notice that was put is told or passed, or waits for its time.

        Raises:
            Unavailable: the bus does not answer.
        """
        preferences = await self._preferences() or NoticePreferences()
        due = preferences.due(notice.kind, self._channel.name, notice.at)
        while due is None or due <= datetime.now(UTC):
            record = await self._records.get(notice_key(notice.id), KeptNotice)
            if record is None or record.value.state in ("told", "passed"):
                return
            await anyio.sleep(POLL_SECONDS)

    async def run(self) -> None:
        """Tell the notices at their times, until cancelled. Raises nothing."""
        while True:
            self._some = anyio.Event()
            try:
                wait = await self._tell_due()
            except (Unavailable, RecordChanged) as error:
                log.info("the notices of channel %s wait: %s", self._channel.name, error)
                wait = self._backoff.advance()
            with anyio.move_on_after(wait):
                await self._some.wait()

    async def _tell_due(self) -> float:
        """Tell what is due; return the seconds until the next notice is."""
        wait, is_settled = float("inf"), True
        known = await self._preferences()
        preferences = known or NoticePreferences()
        records = await self._records.list(NOTICE_PREFIX, KeptNotice)
        for record in sorted(records, key=lambda one: one.value.notice.at):
            if record.value.state in ("told", "passed"):
                continue
            notice, now = record.value.notice, datetime.now(UTC)
            due = preferences.due(notice.kind, self._channel.name, notice.at)
            if due is None and known is None:
                is_settled = False  # the owner may want it
            elif due is None or await self._is_told_elsewhere(preferences, notice):
                await self._note(record, "passed")
            elif due > now:
                wait = min(wait, (due - now).total_seconds())
            else:
                is_settled = await self._is_settled(record) and is_settled
        if is_settled:
            self._backoff.reset()
            return wait
        return min(wait, self._backoff.advance())

    async def _is_told_elsewhere(self, preferences: NoticePreferences, notice: OwnerNotice) -> bool:
        for channel in preferences.earlier(notice.kind, self._channel.name):
            record = await self._others(channel).get(notice_key(notice.id), KeptNotice)
            if record is not None and record.value.state == "told":
                return True
        return False

    async def _is_settled(self, record: ChannelRecord[KeptNotice]) -> bool:
        """Tell a notice; report whether nothing is left to do."""
        notice = record.value.notice
        if record.value.state == "telling" and not self._channel.remembers_notices:
            await self._note(record, "told")  # a former process may have told it
            return True
        record = await self._note(record, "telling")
        try:
            await self._channel.tell(self._in_words(notice))
        except Unavailable as unreachable:
            given_up = datetime.now(UTC) > notice.at + GIVEN_UP
            log.info("channel %s did not tell its owner: %s", self._channel.name, unreachable)
            await self._note(record, "passed" if given_up else "waiting")
            return given_up
        except Exception:
            log.exception("channel %s could not tell its owner", self._channel.name)
            if self._channel.remembers_notices:
                return False
        await self._note(record, "told")
        return True

    def _in_words(self, notice: OwnerNotice) -> OwnerNotice:
        said = self._sentences.put(notice.sentences)
        text = printable("\n".join(part for part in (said, notice.text) if part))
        return msgspec.structs.replace(notice, text=text, sentences=())

    async def _note(self, record: ChannelRecord[KeptNotice], state: str) -> ChannelRecord[KeptNotice]:
        kept = msgspec.structs.replace(record.value, state=state)
        if state in ("told", "passed"):  # the text is not kept longer than it is needed
            notice = msgspec.structs.replace(kept.notice, text="", sentences=())
            kept = msgspec.structs.replace(kept, notice=notice)
        revision = await self._records.put(record.key, kept, revision=record.revision, ttl=KEPT_SECONDS)
        return ChannelRecord(record.key, kept, revision)


def notice_key(id: str) -> str:
    """Return the key of a notice. Raises nothing."""
    return f"{NOTICE_PREFIX}.{hashlib.sha256(id.encode()).hexdigest()[:32]}"
