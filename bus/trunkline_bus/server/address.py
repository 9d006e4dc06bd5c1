"""The last address and credentials of the embedded server. They are stored so that a restarted server uses them again.

Clients of a restarted instance (a terminal attached to ``trunkline up``) then continue after a reconnection. A new port
and password at every start would prevent that.
"""

import contextlib
import os
import secrets
import socket
from pathlib import Path

import msgspec


class ServerAddress(msgspec.Struct, frozen=True):
    """A port, or -1 for any free port, and the password of the server."""

    port: int
    password: str


def load_address(store: Path, host: str) -> ServerAddress:
    """Return the stored address if its port is free; otherwise return a new address."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        address = msgspec.json.decode(_file(store).read_bytes(), type=ServerAddress)
        if _is_free(host, address.port):
            return address
    return ServerAddress(-1, secrets.token_urlsafe(24))


def save_address(store: Path, address: ServerAddress) -> None:
    """Store the address for the next start. Only the owner can read the file."""
    with os.fdopen(os.open(_file(store), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(address))


def _file(store: Path) -> Path:
    return store / "address.json"


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError:
            return False
    return True
