"""The pause between attempts, doubled after each one."""

import anyio


class Backoff:
    """Sleeps ``first`` seconds, then twice as long each time, up to ``longest``."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.delay = first
        """The seconds of the next pause."""

    async def sleep(self) -> None:
        """Sleep for ``delay`` seconds, then double it."""
        await anyio.sleep(self.delay)
        self.delay = min(self.delay * 2, self._longest)

    def reset(self) -> None:
        """Begin again with the first delay."""
        self.delay = self._first
