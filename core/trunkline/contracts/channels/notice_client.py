"""Hands a notice to the channels, each of which tells it by the owner's preferences."""

import logging
from collections.abc import Sequence

from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.gateway.messages import TellOwner
from trunkline_bus import Bus, BusError, RemoteFault

log = logging.getLogger(__name__)

TELL_SECONDS, ABSENT_SECONDS = 20.0, 2.0
"""Seconds that a channel may take to store a notice, and seconds that a restarting channel may be absent."""


async def hand_to_channels(bus: Bus, channels: Sequence[str], message: TellOwner) -> tuple[str, ...]:
    """Hand a message with a ``notice`` to each channel, and return the channels that do not have it: the terminal, and
    those that do not run now. It may be handed over again; a channel tells it once. Raises nothing.
    """
    left = []
    for name in channels:
        try:
            await bus.call(TELL_OWNER, message, timeout=TELL_SECONDS, absent=ABSENT_SECONDS, channel=name)
        except (BusError, RemoteFault) as error:
            log.debug("the channel %s has no notice yet: %s", name, error)
            left.append(name)
    return tuple(left)
