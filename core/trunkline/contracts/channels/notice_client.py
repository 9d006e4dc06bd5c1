"""Hands notices to the channels, each of which tells them by the owner's preferences."""

import logging
from collections.abc import Sequence

from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.gateway.messages import TellOwner
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders

log = logging.getLogger(__name__)

TELL_SECONDS, ABSENT_SECONDS = 20.0, 2.0
"""Seconds that a channel may take to store a notice, and seconds that a restarting channel may be absent."""


class NoticeRound:
    """Hands notices to channels, one after the other. Make a new round to try again later.

    Guarantees: a channel that does not answer is waited for once, and not once for each notice.

    Not guaranteed: that a channel which comes back during the round has the notices that follow.
    """

    def __init__(self, bus: Bus, channels: Sequence[str]) -> None:
        self._bus = bus
        self._channels = channels
        self._silent: set[str] = set()

    async def hand(self, message: TellOwner) -> tuple[str, ...]:
        """Hand a message with a ``notice`` to each channel, and return the channels that do not have it. It may be
        handed over again; a channel tells it once. Raises nothing.
        """
        return tuple([name for name in self._channels if not await self._takes(name, message)])

    async def _takes(self, name: str, message: TellOwner) -> bool:
        if name in self._silent:
            return False
        try:
            await self._bus.call(
                TELL_OWNER, message, timeout=TELL_SECONDS, absent=ABSENT_SECONDS, channel=name
            )
        except BusError as error:  # also what the channel refuses
            log.debug("the channel %s has no notice yet: %s", name, error)
            if isinstance(error, NoResponders | CallTimeout):
                self._silent.add(name)
            return False
        return True
