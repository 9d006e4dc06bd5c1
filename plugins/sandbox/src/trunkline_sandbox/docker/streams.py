"""The standard streams of a container over one connection: splits the frames of its output.

A frame is one byte for the stream (1 or 2), three of nothing, four for the length, then the content (Docker's API,
"Attach to a container").
"""

from collections import deque

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

MOST_WAITING = 8 * 1024 * 1024
"""Bytes of one stream that are buffered while the other is read. The oldest are dropped, or a program that floods
standard error would fill our memory."""

PIECE = 64 * 1024

SILENCE_SECONDS = 0.5


class AttachedStreams:
    """The connection. ``stdout`` and ``stderr`` may be read at the same time; ``first`` is what came already."""

    def __init__(self, stream: SocketStream, first: bytes) -> None:
        self._stream = stream
        self._buffered = BufferedByteReceiveStream(stream)
        self._first = first
        self._turn = anyio.Lock()
        self._frame: tuple[int, int] = (0, 0)
        self.ended = anyio.Event()
        """Set once there is no more to read: the container has ended."""
        self.stdin = StdinStream(stream)
        self.stdout, self.stderr = ContainerOutput(self, 1), ContainerOutput(self, 2)

    async def pull(self, stream: "ContainerOutput") -> None:
        """Read on until ``stream`` has something or all is over. Whoever is first reads for both."""
        async with self._turn:
            if not stream.waiting:
                await self._read_frame()

    async def finish(self) -> None:
        """The container has ended: take in what is still on the way, for whoever reads it later, and hang up. The
        engine does not always: not while it is owed the end of an input that nobody reads."""
        await self.stdin.aclose()
        while not self.ended.is_set():
            with anyio.move_on_after(SILENCE_SECONDS) as silent:
                async with self._turn:
                    await self._read_frame()
            if silent.cancelled_caught:
                break
        await self.aclose()

    async def _read_frame(self) -> None:
        if not self.ended.is_set():
            try:
                number, content = await self._read_chunk()
            except (
                anyio.IncompleteRead,
                anyio.EndOfStream,
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
            ):
                self.ended.set()
                return
            (self.stderr if number == 2 else self.stdout).put(content)

    async def _read_chunk(self) -> tuple[int, bytes]:
        """Some content of the frame under way. A reader that is cancelled loses nothing."""
        if self._first:
            self._buffered.feed_data(self._first)
            self._first = b""
        number, left = self._frame
        if not left:
            header = await self._buffered.receive_exactly(8)
            number, left = self._frame = header[0], int.from_bytes(header[4:], "big")
            if not left:
                return number, b""
        content = await self._buffered.receive(min(left, PIECE))
        self._frame = number, left - len(content)
        return number, content

    async def aclose(self) -> None:
        """Let go of it; a container that still waits for its orders ends by that."""
        await anyio.aclose_forcefully(self._stream)
        self.ended.set()


class StdinStream(ByteSendStream):
    """Standard input."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._closed = False

    async def send(self, item: bytes) -> None:
        """Write. Raises what a broken stream does once the program is gone."""
        if self._closed:
            raise anyio.ClosedResourceError
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Tell the program that there is no more."""
        if not self._closed:
            self._closed = True
            try:
                await self._stream.send_eof()
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError):
                return  # the last: somebody still writes what nobody will read


class ContainerOutput(ByteReceiveStream):
    """Standard output or standard error."""

    def __init__(self, wire: AttachedStreams, number: int) -> None:
        self._wire = wire
        self._number = number
        self._size = 0
        self.waiting: deque[bytes] = deque()

    def put(self, content: bytes) -> None:
        """Add output that was read for this stream."""
        if content:
            self.waiting.append(content)
            self._size += len(content)
        while self._size > MOST_WAITING:
            self._size -= len(self.waiting.popleft())

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The next piece. Raises anyio.EndOfStream."""
        while not self.waiting:
            if self._wire.ended.is_set():
                raise anyio.EndOfStream
            await self._wire.pull(self)
        content = self.waiting.popleft()
        if len(content) > max_bytes:
            self.waiting.appendleft(content[max_bytes:])
            content = content[:max_bytes]
        self._size -= len(content)
        return content

    async def aclose(self) -> None:
        """Throw away what is not read."""
        self.waiting.clear()
