"""The live output of a call: what its programs printed last, for people who watch the call. The result does not depend
on it.
"""

import codecs
from collections.abc import Callable

from anyio.abc import ByteReceiveStream

from trunkline.contracts.sandbox.sandbox import SandboxProcess

MAX_PIECE = 4_000
"""Largest number of characters that a message to the watchers carries. Earlier output that was not sent is dropped, so
that a program that prints without end costs the watchers no more than a slow one.
"""


class LiveOutput:
    """Keeps the last ``MAX_PIECE`` characters of the output of a call's programs, and counts all characters."""

    def __init__(self) -> None:
        self._last = ""
        self._end = 0
        self.begun = False
        """Whether a program of the call shows its output."""

    def observe(self, process: SandboxProcess) -> None:
        """Keep what is read of the program's output from now on."""
        self.begun = True
        process.stdout = _ObservedStream(process.stdout, self._decoder())
        process.stderr = _ObservedStream(process.stderr, self._decoder())

    def after(self, position: int) -> tuple[int, str]:
        """Return what was printed after character ``position`` and is still kept, and where it begins."""
        begin = max(position, self._end - len(self._last))
        return begin, self._last[len(self._last) - (self._end - begin) :] if begin < self._end else ""

    def _decoder(self) -> Callable[[bytes], None]:
        """Return a function that adds bytes of one stream. A character may arrive in two pieces."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def add(piece: bytes) -> None:
            text = decoder.decode(piece)
            self._end += len(text)
            self._last = (self._last + text)[-MAX_PIECE:]

        return add


class _ObservedStream(ByteReceiveStream):
    """A stream of output. Each piece that is read is also given to ``add``."""

    def __init__(self, stream: ByteReceiveStream, add: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._add = add

    async def receive(self, max_bytes: int = 65536) -> bytes:
        piece = await self._stream.receive(max_bytes)
        self._add(piece)
        return piece

    async def aclose(self) -> None:
        await self._stream.aclose()
