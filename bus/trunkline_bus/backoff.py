"""The pause between attempts, which doubles after each attempt."""

import anyio


class Backoff:
    """Sleeps ``first`` seconds, then twice as long each time, up to ``longest`` seconds.

    Guarantees: no pause is longer than ``longest``.

    Not guaranteed: that several clients pause at different times, because nothing is random.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.delay = first
        """The next pause, in seconds."""

    def advance(self) -> float:
        """Return ``delay`` and double it, for a caller that waits by other means. Raises nothing."""
        delay, self.delay = self.delay, min(self.delay * 2, self._longest)
        return delay

    async def sleep(self) -> None:
        """Sleep for ``delay`` seconds, and double it. Raises nothing."""
        await anyio.sleep(self.advance())

    async def wait(self, stop: anyio.Event) -> None:
        """Sleep for ``delay`` seconds, but return as soon as ``stop`` is set, and double ``delay``. Raises nothing."""
        with anyio.move_on_after(self.advance()):
            await stop.wait()

    def reset(self) -> None:
        """Set ``delay`` back to the first pause. Raises nothing."""
        self.delay = self._first
