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

    async def read_line(self) -> str | None:
        """The next line without its end, or None when there is none any more."""
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
