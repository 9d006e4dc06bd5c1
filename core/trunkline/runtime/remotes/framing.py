"""The messages of an enrolment on a byte stream: one JSON line each."""

from typing import TypeVar

import msgspec
from anyio.abc import ByteStream

from trunkline.errors import TrunklineError
from trunkline.runtime.remotes.handshake import MAX_LINE_BYTES, EnrolmentRefused, HandshakeMessage

T = TypeVar("T", bound=msgspec.Struct)


class RefusedByPeer(TrunklineError):
    """The other side refused the enrolment."""


async def send(stream: ByteStream, message: HandshakeMessage) -> None:
    """Send one message."""
    await stream.send(msgspec.json.encode(message) + b"\n")


async def receive(stream: ByteStream, kind: type[T]) -> T:
    """Receive one message of a kind.

    Raises:
      RefusedByPeer: the other side refused; the text is the other side's reason.
      msgspec.MsgspecError: the message is of another kind, invalid, or too long.
    """
    line = b""
    while not line.endswith(b"\n"):
        line += await stream.receive(4096)
        if len(line) > MAX_LINE_BYTES:
            raise msgspec.DecodeError("the message is too long")
    message = msgspec.json.decode(line, type=HandshakeMessage)
    if isinstance(message, EnrolmentRefused):
        raise RefusedByPeer(message.reason)
    if not isinstance(message, kind):
        raise msgspec.ValidationError(f"{type(message).__name__} instead of {kind.__name__}")
    return message
