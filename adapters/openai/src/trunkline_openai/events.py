"""Server-sent events out of bytes. Only their data is read: nothing else of them says anything here. No I/O."""

from collections.abc import Iterator


class EventData:
    """Give it the bytes as they come; it gives the data of each event that is whole."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that these bytes complete. An event without data is none."""
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in (line.removesuffix(b"\r") for line in lines):
            if line.startswith(b"data:"):
                self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
