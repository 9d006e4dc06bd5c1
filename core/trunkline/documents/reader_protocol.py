"""The protocol between this process and the reader process: a length, then msgpack, over a pair of sockets.

A job goes along with the handle of the open file. What comes back is data that a hostile file may have written: it is
decoded into the types below and nothing else, up to a size.
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
    """Read the file of the handle that came along. ``module`` and ``file`` are where the reader's class stands."""

    reader: bytes
    module: str
    file: str
    name: str


class ReadResult(msgspec.Struct, frozen=True, tag=True):
    """It was read. ``spent``: the process has grown large and ends now."""

    document: Document
    spent: bool


class ReadFailure(msgspec.Struct, frozen=True, tag=True):
    """It was not read, for a ``reason`` that is the end of a sentence."""

    reason: str
    spent: bool


READY = b"!"
"""What the process says when it has started: a file's time begins then."""

_reply: msgspec.msgpack.Decoder[ReadResult | ReadFailure] = msgspec.msgpack.Decoder(ReadResult | ReadFailure)
_job = msgspec.msgpack.Decoder(ReadJob)


def send_message(
    connection: socket.socket, message: ReadJob | ReadResult | ReadFailure, handle: int | None = None
) -> None:
    """Send a message, and a handle with it. Raises OSError when nobody is there."""
    data = msgspec.msgpack.encode(message)
    rights = [] if handle is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))]
    connection.sendmsg([_LENGTH.pack(len(data))], rights)
    connection.sendall(data)


def receive_job(connection: socket.socket) -> tuple[ReadJob, int] | None:
    """The next job and the handle of its file; None when there will be none."""
    start, handles, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
    if not start:
        return None
    return _job.decode(_exactly(connection, _LENGTH.unpack(start)[0], None)), handles[0]


def wait_ready(connection: socket.socket, deadline: float) -> None:
    """Wait for the process to have started. Raises TimeoutError and EOFError."""
    if _exactly(connection, len(READY), deadline) != READY:
        raise EOFError("it did not start as it must")


def receive_reply(connection: socket.socket, deadline: float) -> ReadResult | ReadFailure:
    """Return the result of the job.

    Raises:
        TimeoutError: nothing came until ``deadline``, a time of ``time.monotonic``.
        EOFError: the process ended, or wrote what it must not.
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
