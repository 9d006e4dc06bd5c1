"""The pause between attempts, doubled after each one."""

import anyio


class Backoff:
    """Sleeps ``first`` seconds, then twice as long each time, up to ``longest``."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.delay = first
        """The seconds of the next pause."""

    def advance(self) -> float:
        """Return ``delay`` and double it, for a caller that waits in its own way."""
        delay, self.delay = self.delay, min(self.delay * 2, self._longest)
        return delay

    async def sleep(self) -> None:
        """Sleep for ``delay`` seconds, and double it."""
        await anyio.sleep(self.advance())

    async def wait(self, stop: anyio.Event) -> None:
        """Sleep as ``sleep`` does, but return as soon as ``stop`` is set."""
        with anyio.move_on_after(self.advance()):
            await stop.wait()

    def reset(self) -> None:
        """Begin again with the first delay."""
        self.delay = self._first
