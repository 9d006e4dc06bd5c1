"""The inner end of the pipes: frames of JSON with their length (4 bytes, big-endian) before them."""

import json
import os
from typing import Any

IN, OUT = 0, 1

LARGEST_DATA = 4 * 1024 * 1024 - 4096
"""Bytes of a value that is no text, with room for the frame around it (``frames.py`` has the host's bound)."""


def send(kind: str, *fields: Any) -> None:
    """Write a frame. Raises TypeError or ValueError for what JSON has no form for, MemoryError for too much of it."""
    text = json.dumps([kind, *fields], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = text.encode(errors="replace")
    if len(body) > LARGEST_DATA and not (kind == "done" and isinstance(fields[0], str)):
        raise MemoryError("more than 4 MB to hand over at once")
    _write(len(body).to_bytes(4, "big"))
    _write(body)


def receive() -> list[Any]:
    """The next frame. Ends the process when there is nobody any more who could send one."""
    size = int.from_bytes(_read(4), "big")
    frame: list[Any] = json.loads(_read(size))
    return frame


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(OUT, view) :]


def _read(size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(IN, min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
