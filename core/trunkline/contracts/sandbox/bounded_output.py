"""A bounded buffer of output, which keeps the beginning and the end of a stream."""

from collections import deque
from contextlib import suppress

import anyio
from anyio.abc import ByteReceiveStream


class BoundedOutput:
    """Keeps at most ``most`` bytes of everything added: half of them from the beginning, the rest from the end.
    ``dropped`` is the number of bytes not kept.
    """

    def __init__(self, most: int) -> None:
        self._most_head = most // 2
        self._most_tail = most - self._most_head
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._size = 0
        self.dropped = 0

    def add(self, piece: bytes) -> None:
        """Add bytes. If there is no room, the oldest bytes after the beginning are dropped."""
        room = self._most_head - len(self._head)
        self._head += piece[:room]
        if rest := piece[room:]:
            self._tail.append(rest)
            self._size += len(rest)
        while self._size > self._most_tail:
            over = self._size - self._most_tail
            oldest = self._tail.popleft()
            if len(oldest) > over:
                self._tail.appendleft(oldest[over:])
            gone = min(over, len(oldest))
            self._size -= gone
            self.dropped += gone

    def content(self) -> bytes:
        """Return the kept bytes, with a line where bytes were dropped."""
        missing = b"\n[... %d bytes left out ...]\n" % self.dropped if self.dropped else b""
        return b"".join((bytes(self._head), missing, *self._tail))


async def read_into(stream: ByteReceiveStream, kept: BoundedOutput) -> None:
    """Read a stream to its end into the buffer."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in stream:
            kept.add(piece)
