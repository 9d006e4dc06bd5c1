"""The pause between attempts, which doubles after each attempt."""

import anyio


class Backoff:
    """Sleeps ``first`` seconds, then twice as long each time, up to ``longest`` seconds."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.delay = first
        """The next pause, in seconds."""

    def advance(self) -> float:
        """Return ``delay`` and double it, for a caller that waits by other means."""
        delay, self.delay = self.delay, min(self.delay * 2, self._longest)
        return delay

    async def sleep(self) -> None:
        """Sleep for ``delay`` seconds, and double it."""
        await anyio.sleep(self.advance())

    async def wait(self, stop: anyio.Event) -> None:
        """Sleep for ``delay`` seconds, but return as soon as ``stop`` is set, and double ``delay``."""
        with anyio.move_on_after(self.advance()):
            await stop.wait()

    def reset(self) -> None:
        """Set ``delay`` back to the first pause."""
        self.delay = self._first
