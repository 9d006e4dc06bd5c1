"""The ports that the processes of a home listen on. Each process records its ports in ``run/listeners``."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from trunkline._util.private_folders import make_private

CONNECT_SECONDS = 1.0
FOLDER = "listeners"
WILDCARD_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The wildcard addresses, each with the address at which this host reaches such a listener."""


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """An open port: its ``address``, its purpose, and the ``credential`` that a client needs."""

    address: str
    purpose: str
    credential: str


@contextmanager
def registered_listener(run: Path, listener: Listener) -> Iterator[None]:
    """Record a listener for ``trunkline doctor`` while the block runs. ``run`` is the ``run`` folder of the home.

    If the folder cannot be written, the listener works without a record.
    """
    port = urlsplit(listener.address).port
    file = run / FOLDER / f"{os.getpid()}-{port}.json"
    with suppress(OSError):
        make_private(file.parent)
        file.write_bytes(msgspec.json.encode(listener))
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def read_listeners(run: Path) -> list[Listener]:
    """Return the open ports, sorted by address. Records of processes that ended are removed."""
    found = (_listener(file) for file in sorted((run / FOLDER).glob("*.json")))
    return sorted((one for one in found if one is not None), key=lambda one: one.address)


def _listener(file: Path) -> Listener | None:
    try:
        listener = msgspec.json.decode(file.read_bytes(), type=Listener)
    except (OSError, msgspec.DecodeError):
        return None
    pid = file.stem.partition("-")[0]
    if pid.isdigit() and _is_alive(int(pid)) and _accepts(listener.address):
        return listener
    with suppress(OSError):
        file.unlink()
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _accepts(address: str) -> bool:
    where = urlsplit(address)
    host = where.hostname or ""
    try:
        socket.create_connection(
            (WILDCARD_ADDRESSES.get(host, host), where.port or 0), CONNECT_SECONDS
        ).close()
    except OSError:
        return False
    return True
