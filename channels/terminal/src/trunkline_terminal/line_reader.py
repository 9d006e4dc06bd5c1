"""Lines from standard input, read without blocking the loop and without a thread that would outlive it."""

import codecs
import os
import stat

import anyio


class LineReader:
    """Reads a file descriptor line by line. Bytes that are no UTF-8 become �."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._ended = False
        self._waits = _can_wait(descriptor)
        self._readers: list[anyio.CancelScope] = []
        self._fewer = anyio.Event()
        self._reading = anyio.Lock()

    async def read_line(self) -> str | None:
        """The next line without its end, or None when there is none any more. Of several readers the one that began
        last gets the next line, such as a question that appears while a message could be typed; the others wait.
        """
        if self._readers:
            self._readers[-1].cancel()
        mine = anyio.CancelScope()
        self._readers.append(mine)
        try:
            while True:
                with mine:
                    async with self._reading:  # until the reader before has left
                        return await self._next_line()
                while self._readers[-1] is not mine:
                    await self._fewer.wait()
                mine = self._readers[-1] = anyio.CancelScope()  # a cancelled one cannot be entered again
        finally:
            self._readers.remove(mine)
            self._fewer.set()
            self._fewer = anyio.Event()

    async def _next_line(self) -> str | None:
        while "\n" not in self._rest and not self._ended:
            await self._fill()
        line, newline, self._rest = self._rest.partition("\n")
        if not newline and not line:
            return None
        return line.removesuffix("\r")

    async def read_all(self) -> str:
        """All that is left."""
        while not self._ended:
            await self._fill()
        text, self._rest = self._rest, ""
        return text

    async def _fill(self) -> None:
        if self._waits:
            await anyio.wait_readable(self._descriptor)
        else:
            await anyio.lowlevel.checkpoint()
        data = os.read(self._descriptor, 65_536)
        self._ended = not data
        self._rest += self._decoder.decode(data, final=not data)


def _can_wait(descriptor: int) -> bool:
    """Files and devices such as /dev/null are always ready and cannot be waited for."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
