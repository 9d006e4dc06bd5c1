"""The messages that a session's process may send. They are untrusted until they are parsed into these types."""

import json
from typing import Any

import msgspec

LARGEST = 12 * 1024 * 1024
"""Bytes of a frame: an object inside has 10 MB at most. More is nothing that our side of the process would send."""

LARGEST_DATA = 4 * 1024 * 1024
"""Bytes of a value that is no text: lists of next to nothing take many times as much memory here as on the way."""

LARGEST_NAMES = 128 * 1024
"""Bytes of the list of variables; our side tells a hundred at most."""

DEEPEST = 200
"""The largest nesting depth of values that leave the child."""


class HostileFrameError(Exception):
    """The process said what it never says: it has been taken over, and is ended."""


class ReadyFrame(msgspec.Struct, frozen=True, array_like=True, tag="ready", forbid_unknown_fields=True):
    """The process has confined itself."""


class RefusedFrame(msgspec.Struct, frozen=True, array_like=True, tag="refused", forbid_unknown_fields=True):
    """The process cannot be confined here, and runs nothing."""

    reason: str


class OutputFrame(msgspec.Struct, frozen=True, array_like=True, tag="out", forbid_unknown_fields=True):
    """The code printed this."""

    text: str


class CallFrame(msgspec.Struct, frozen=True, array_like=True, tag="call", forbid_unknown_fields=True):
    """The code calls a function of the host."""

    name: str
    arguments: msgspec.Raw
    named: msgspec.Raw

    def decode_arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, by position and by name. Raises HostileFrameError."""
        return _decode_value(self.arguments, list[Any]), _decode_value(self.named, dict[str, Any])


class DoneFrame(msgspec.Struct, frozen=True, array_like=True, tag="done", forbid_unknown_fields=True):
    """The code has ended. ``names`` are its variables with their types."""

    raw: msgspec.Raw
    shown: str
    error: str | None
    violation: bool
    names: msgspec.Raw

    @property
    def value(self) -> Any:
        """The value of the last expression. Raises HostileFrameError."""
        return _decode_value(self.raw, Any)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of variables with their types. Raises HostileFrameError."""
        if len(bytes(self.names)) > LARGEST_NAMES:
            raise HostileFrameError("too many names")
        return tuple(_decode_value(self.names, list[str]))


Frame = ReadyFrame | RefusedFrame | OutputFrame | CallFrame | DoneFrame

_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


def decode_frame(body: bytes) -> Frame:
    """The frame of these bytes, with what code made still unread. Raises HostileFrameError."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HostileFrameError(f"an invalid frame: {str(error)[:200]}") from error


def frame_length(head: bytes) -> int:
    """The length in a frame's head. Raises HostileFrameError for one that is too large."""
    size = int.from_bytes(head, "big")
    if not 0 < size <= LARGEST:
        raise HostileFrameError(f"a frame of {size} bytes")
    return size


def encode_frame(kind: str, *fields: Any) -> bytes:
    """A frame for the process, with its head. Raises ValueError or TypeError for what has no form in JSON, and for
    too much of it."""
    body = json.dumps([kind, *fields], ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if len(body) > LARGEST:
        raise ValueError(f"that is too large to transfer: {len(body)} bytes")
    return len(body).to_bytes(4, "big") + body


def _decode_value(raw: msgspec.Raw, kind: Any) -> Any:
    body = bytes(raw)
    if len(body) > LARGEST_DATA and not body.startswith(b'"'):
        raise HostileFrameError(f"a value of {len(body)} bytes")
    try:
        value = msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HostileFrameError(f"an invalid value: {str(error)[:200]}") from error
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Raises HostileFrameError for a value that would break whoever walks through it."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _children(each)]
        if not level:
            return
    raise HostileFrameError(f"a value nested more than {DEEPEST} levels deep")


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
