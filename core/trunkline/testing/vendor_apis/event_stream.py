"""The encoder of ``application/vnd.amazon.eventstream``: binary frames with headers and checksums."""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"
STRING_TYPE = 7
PRELUDE_AND_CHECKSUM = 16
"""Bytes of a frame besides its headers and its payload: two lengths and two checksums."""


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Encode one frame. The values of the headers are text."""
    packed = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack(">II", PRELUDE_AND_CHECKSUM + len(packed) + len(payload), len(packed))
    prelude = lengths + struct.pack(">I", zlib.crc32(lengths))
    frame = prelude + packed + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def encode_event(kind: str, data: Any) -> bytes:
    """Encode an event. Bytes are sent unchanged, any other value as JSON."""
    payload = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_frame(headers, payload)


def encode_exception(kind: str, message: str) -> bytes:
    """Encode an exception within the stream, such as ``throttlingException``."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return encode_frame(headers, json.dumps({"message": message}).encode())


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack(f">B{len(key)}sBH{len(text)}s", len(key), key, STRING_TYPE, len(text), text)
