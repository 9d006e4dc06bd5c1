"""Ports for servers that are started later."""

import random
import socket

OURS = range(20_000, 32_000)
"""Below those that the system gives to whoever asks for any port, so that no connection has one by chance meanwhile."""


def free_port() -> int:
    """Return a free port of 127.0.0.1, drawn at random: concurrent tests draw others."""
    while True:
        port = random.SystemRandom().choice(OURS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
