"""Messages of an enrolment on a byte stream: each a line of JSON."""

from typing import TypeVar

import msgspec
from anyio.abc import ByteStream

from trunkline.errors import TrunklineError
from trunkline.runtime.remotes.handshake import LARGEST, EnrolmentRefused, HandshakeMessage

T = TypeVar("T", bound=msgspec.Struct)


class RefusedByPeer(TrunklineError):
    """The other side refused."""


async def send(stream: ByteStream, said: HandshakeMessage) -> None:
    """Send one message."""
    await stream.send(msgspec.json.encode(said) + b"\n")


async def receive(stream: ByteStream, wanted: type[T]) -> T:
    """Receive one message of a kind.

    Raises:
        TurnedAway: the other side refused; the sentence is its own.
        msgspec.MsgspecError: it is another message, none, or too long.
    """
    line = b""
    while not line.endswith(b"\n"):
        line += await stream.receive(4096)
        if len(line) > LARGEST:
            raise msgspec.DecodeError("the message is too long")
    said = msgspec.json.decode(line, type=HandshakeMessage)
    if isinstance(said, EnrolmentRefused):
        raise RefusedByPeer(said.reason)
    if not isinstance(said, wanted):
        raise msgspec.ValidationError(f"{type(said).__name__} in place of {wanted.__name__}")
    return said
