"""Encoding and decoding of envelopes. A message that cannot be decoded is refused with the id that it had, if any."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.request_reader import decode_json
from trunkline.workers.gateway.socket.client_envelopes import ClientMessage
from trunkline.workers.gateway.socket.server_envelopes import ErrorEnvelope, ErrorPayload, ServerMessage
from trunkline_bus import Refusal, new_id

_ENCODER = msgspec.json.Encoder()

_SERVER_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in ServerMessage.__args__) - frozenset(
    str(kind.__struct_config__.tag) for kind in ClientMessage.__args__
)


class _Outline(msgspec.Struct):
    """The fields that are read from any message, whatever they are."""

    id: Any = None
    type: Any = None


def decode_envelope(message: str | bytes) -> ClientMessage:
    """Return the envelope of a client.

    Raises InvalidField if it is none, and Refusal ``forbidden`` if only the server sends envelopes of its type.
    """
    body = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
    kind = _outline(body).type
    if isinstance(kind, str) and kind in _SERVER_TYPES:
        raise refusal(ErrorCode.FORBIDDEN, "Only the server sends envelopes of this type.")
    return decode_json(body, ClientMessage)  # type: ignore[arg-type]


def id_of(message: str | bytes) -> str | None:
    """Return the id in a message that was refused; None if it has none that can be read."""
    body = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
    id = _outline(body).id
    return id[:200] if isinstance(id, str) and id else None


def _outline(body: bytes) -> _Outline:
    try:
        return msgspec.json.decode(body, type=_Outline)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Outline()


def encode_envelope(envelope: ServerMessage) -> str:
    """Return an envelope as it is sent."""
    return _ENCODER.encode(envelope).decode()


def now() -> datetime:
    """Return the time for an envelope."""
    return datetime.now(UTC)


def error_envelope(
    error: Refusal,
    *,
    reply_to: str | None,
    correlation_id: str,
    subscription: str | None = None,
    why: str = "",
) -> ErrorEnvelope:
    """Return the envelope of a refusal: the fixed sentence of its code, and which field is wrong. ``why`` is the reason
    of a conflict, "" if the client may not know it.
    """
    code = ErrorCode(error.code)
    metadata = {"reason": why} if why else {}
    if isinstance(error, InvalidField):
        metadata = {"field": error.pointer, "reason": error.reason}
    payload = ErrorPayload(
        code=code,
        message=FIXED_SENTENCES[code],
        reply_to=reply_to,
        correlation_id=correlation_id,
        subscription=subscription,
        metadata=metadata,
    )
    return ErrorEnvelope(id=new_id("env"), timestamp=now(), payload=payload)
