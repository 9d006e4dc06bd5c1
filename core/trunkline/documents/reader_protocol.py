"""The protocol between this process and a reader process: a length, then msgpack, over a pair of sockets.

A job is sent together with the descriptor of the open file. The reply is untrusted, because a hostile file may have
written it: it is decoded only into the types below, and its size is limited.
"""

import array
import socket
import struct
import time

import msgspec

from trunkline.contracts.documents.reader import Document

MAX_REPLY_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct("!I")


class ReadJob(msgspec.Struct, frozen=True, tag=True):
    """A request to read the file whose descriptor is sent with it. ``module`` and ``file`` name the module of the
    reader's class.
    """

    reader: bytes
    module: str
    file: str
    name: str


class ReadResult(msgspec.Struct, frozen=True, tag=True):
    """The document that was read. ``spent`` is True if the process uses too much memory for another file."""

    document: Document
    spent: bool


class ReadFailure(msgspec.Struct, frozen=True, tag=True):
    """The file was not read. ``reason`` is the end of a sentence."""

    reason: str
    spent: bool


READY = b"!"
"""The bytes that the process sends when it has started. The time limit of a file begins after them."""

_reply: msgspec.msgpack.Decoder[ReadResult | ReadFailure] = msgspec.msgpack.Decoder(ReadResult | ReadFailure)
_job = msgspec.msgpack.Decoder(ReadJob)


def send_message(
    connection: socket.socket, message: ReadJob | ReadResult | ReadFailure, handle: int | None = None
) -> None:
    """Send a message, with a descriptor if given. Raises OSError if the other side has closed the connection."""
    data = msgspec.msgpack.encode(message)
    rights = [] if handle is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))]
    connection.sendmsg([_LENGTH.pack(len(data))], rights)
    connection.sendall(data)


def receive_job(connection: socket.socket) -> tuple[ReadJob, int] | None:
    """Return the next job and the descriptor of its file; None if the parent has closed the connection."""
    start, handles, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
    if not start:
        return None
    return _job.decode(_exactly(connection, _LENGTH.unpack(start)[0], None)), handles[0]


def wait_ready(connection: socket.socket, deadline: float) -> None:
    """Wait until the process has started. Raises TimeoutError and EOFError."""
    if _exactly(connection, len(READY), deadline) != READY:
        raise EOFError("it did not start as it must")


def receive_reply(connection: socket.socket, deadline: float) -> ReadResult | ReadFailure:
    """Return the result of the job.

    Raises:
        TimeoutError: no reply until ``deadline``, a time of ``time.monotonic``.
        EOFError: the process ended, or its reply is not valid.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > MAX_REPLY_BYTES:
        raise EOFError("its reply is too large")
    try:
        return _reply.decode(_exactly(connection, length, deadline))
    except msgspec.DecodeError as error:
        raise EOFError("its reply is none") from error


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError("it ended")
        data += piece
    return bytes(data)
