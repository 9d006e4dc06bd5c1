"""Splits the bytes of an event stream into events. No I/O.

The SDK's reader is not used: it takes comments and fields other than ``data`` for parts of a JSON document, and bytes
that are no UTF-8 for characters.
"""

from collections.abc import Iterator

from trunkline.api.model import model_error

MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event, a bound on what a server makes the adapter keep."""


class EventSplitter:
    """Collects bytes and yields the text of each complete event. Lines end with CR, LF or CRLF."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._other: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the events that end in this chunk. Raise UnicodeDecodeError, or ModelError for an endless event."""
        self._size += len(chunk)
        if self._size > MAX_EVENT:
            raise model_error("bad_response", f"an event has more than {MAX_EVENT} bytes")
        # A CR at the end may be the first half of a CRLF.
        *lines, self._rest = self._split(self._rest + chunk)
        for line in lines:
            yield from self._line(line)

    def finish(self) -> Iterator[str]:
        """Yield the event that the end of the stream ends."""
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        yield from self._line(rest)
        yield from self._line(b"")
        if self._other:
            yield b"\n".join(self._other).decode()

    def _split(self, data: bytes) -> list[bytes]:
        held = b"\r" if data.endswith(b"\r") else b""
        lines = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        lines[-1] += held
        return lines

    def _line(self, line: bytes) -> Iterator[str]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            event, self._data, self._size = b"\n".join(self._data), [], 0
            yield event.decode()
        elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            self._other.append(line)  # an error that the server writes as a JSON document into the stream
