"""Encoding and decoding of envelopes. Does not use NATS. Each payload type has one decoder, which is built once."""

from typing import Any, TypeVar

import msgspec

from trunkline_bus.endpoint import payload_types
from trunkline_bus.envelope import Envelope
from trunkline_bus.errors import DecodeError

T = TypeVar("T")


class _Head(msgspec.Struct):
    data: Any


class Codec:
    """Encodes and decodes envelopes as JSON. Not thread-safe; each connection has its own."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    def encode(self, envelope: Envelope[Any]) -> bytes:
        """Return the envelope as JSON bytes."""
        return self._encoder.encode(envelope)

    def decode(self, payload: type[T], data: bytes) -> Envelope[T]:
        """Return the envelope in ``data``. Raises ``DecodeError`` if ``data`` is not an envelope of ``payload``."""
        decoder = self._decoders.get(payload)
        if decoder is None:
            decoder = self._decoders[payload] = msgspec.json.Decoder(Envelope[payload])  # type: ignore[valid-type]
        try:
            envelope: Envelope[T] = decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _explain(payload, data, error) from error
        return envelope


def _explain(payload: Any, data: bytes, error: Exception) -> DecodeError:
    """Return the error for ``data``: garbage, an unknown tag, or a known payload with wrong fields. Runs only after a
    failure.
    """
    if not isinstance(error, msgspec.ValidationError):
        return DecodeError("garbage", str(error) or type(error).__name__)
    known = {member.__struct_config__.tag for member in payload_types(payload)}
    try:
        head = msgspec.json.decode(data, type=_Head).data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return DecodeError("invalid", str(error))
    tag = head.get("type") if isinstance(head, dict) else None
    if isinstance(tag, str) and tag not in known:
        return DecodeError("unknown_type", f"unknown payload {tag[:100]!r}, expected one of {sorted(known)}")
    return DecodeError("invalid", str(error))
