"""The HTTP listener of a channel, for a service that sends its messages by requests."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trunkline.errors import ConfigError
from trunkline.home.listeners import Listener, registered_listener


@contextmanager
def http_listener(
    host: str, port: int, *, home: Path, purpose: str, credential: str
) -> Iterator[socket.socket]:
    """Yield a socket that accepts connections, for ``serve_app``; any free port for 0. ``trunkline doctor`` lists it
    with its ``purpose`` and the ``credential`` that a request needs.

    Not guaranteed: any check of a request. The application must limit bodies and refuse requests without a credential.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    with _listening_socket(host, port) as listening:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        with registered_listener(
            home / "run", Listener(address=address, purpose=purpose, credential=credential)
        ):
            yield listening


def _listening_socket(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be listened on: {error.strerror or error}.",
            hint="Choose another address or port, or end the program that uses it.",
        ) from error
