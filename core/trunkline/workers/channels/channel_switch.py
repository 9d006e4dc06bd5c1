"""The switch of a channel: whether it runs. A paused channel stays paused after a restart, until it is resumed."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from trunkline.contracts.channels.channel_control import PAUSED_KEY
from trunkline.contracts.channels.records import ChannelRecords
from trunkline.errors import Unavailable
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)


class ChannelPaused(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a paused channel."""


class ChannelSwitch:
    """Runs a channel except while it is paused.

    Guarantees: what ``pause`` and ``resume`` change is on disk when they return. Messages that people send meanwhile
    wait at their service, and answers wait in the records of the channel.

    Not guaranteed: that the service keeps messages for as long as the channel is paused.
    """

    def __init__(self, records: ChannelRecords) -> None:
        self._records = records
        self._paused: bool | None = None
        self._changed = anyio.Event()
        self._running = anyio.CancelScope()

    async def pause(self) -> None:
        """End the channel until it is resumed. Raises Unavailable if the bus does not answer."""
        await self._records.put(PAUSED_KEY, ChannelPaused())
        self._set(True)
        self._running.cancel()

    async def resume(self) -> None:
        """Let the channel run. Raises Unavailable if the bus does not answer."""
        await self._records.delete(PAUSED_KEY)
        self._set(False)

    async def run(self, body: Callable[[], Awaitable[None]]) -> None:
        """Run ``body`` whenever the channel is not paused, until it returns. Raises what ``body`` raises."""
        await self._load()
        while True:
            while self._paused:
                await self._changed.wait()
            with anyio.CancelScope() as self._running:
                await body()
                return

    async def _load(self) -> None:
        backoff = Backoff(0.2, 5.0)
        while self._paused is None:
            try:
                self._set(await self._records.get(PAUSED_KEY, ChannelPaused) is not None)
            except Unavailable as error:
                log.info("it is not known yet whether a channel is paused: %s", error)
                await backoff.sleep()

    def _set(self, paused: bool) -> None:
        self._paused = paused
        self._changed.set()
        self._changed = anyio.Event()
