"""The waits of the channel between its attempts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryTimes:
    """The waits in seconds. ``first_pause`` lies before the second attempt to reach Telegram or the gateway; each later
    pause is twice as long, up to ``longest_pause``. A request that got no answer has arrived at Telegram after
    ``settling``, or never does. The rest of an album arrives within ``album``. ``searched`` is the number of message
    ids among which an unfinished post is looked for. A bot of which nothing was heard for ``silent`` counts as failing.
    """

    first_pause: float = 0.5
    longest_pause: float = 30.0
    settling: float = 3.0
    album: float = 0.3
    searched: int = 100
    silent: float = 90.0
