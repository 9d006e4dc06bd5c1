"""Reads for a channel how the owner wants to be told."""

import logging

import anyio

from trunkline.contracts.blocks.notice_preferences import GetNoticePreferences, NoticePreferences
from trunkline.contracts.gateway.subjects import GET_NOTICE_PREFERENCES
from trunkline.contracts.sentences.sentences import Sentences
from trunkline_bus import Bus, BusError, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

FRESH_SECONDS = 5.0
"""Seconds for which preferences are used without asking again."""

FIRST_SECONDS = 10.0
"""Seconds to wait for preferences that were never known."""


class PreferenceReader:
    """Returns the owner's preferences for notices; the last known ones while the gateway does not answer. With them
    comes the language of ``sentences``.
    """

    def __init__(
        self,
        bus: Bus,
        channel: str,
        sentences: Sentences,
        *,
        fresh: float = FRESH_SECONDS,
        first: float = FIRST_SECONDS,
    ) -> None:
        self._sentences = sentences
        self._bus = bus
        self._channel = channel
        self._fresh = fresh
        self._first = first
        self._known: NoticePreferences | None = None
        self._read_at = float("-inf")

    async def __call__(self) -> NoticePreferences | None:
        """Return the preferences; None if they were never known and the gateway does not answer. Raises nothing."""
        if self._known is not None and anyio.current_time() < self._read_at + self._fresh:
            return self._known
        give_up, backoff = anyio.current_time() + self._first, Backoff(0.2, 1.0)
        while True:
            try:
                found = await self._bus.call(
                    GET_NOTICE_PREFERENCES,
                    GetNoticePreferences(),
                    timeout=min(5.0, self._first),
                    repeatable=True,
                    channel=self._channel,
                )
            except (BusError, RemoteFault) as error:
                log.info("it is not known how the owner wants to be told: %s", error)
                if self._known is not None or anyio.current_time() >= give_up:
                    return self._known
                await backoff.sleep()
            else:
                self._known, self._read_at = found.preferences, anyio.current_time()
                self._sentences.language = found.language
                return self._known
