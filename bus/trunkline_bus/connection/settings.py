"""The settings of a connection: the address of the server, and limits."""

import re

import msgspec

MINIMUM_SERVER = (2, 14)
"""The oldest nats-server with the features that Trunkline needs."""


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one connection.

    ``url`` may name several servers, separated by commas. ``name`` is the ``source`` of sent envelopes.
    ``inbox_prefix`` is the first part of reply subjects, so that permissions can be granted per worker.
    ``dead_letters`` is a subject template with the key ``reason``. ``claims`` is the object bucket for payloads above
    ``claim_threshold`` bytes. ``claim_ttl`` (seconds; None is no limit), ``claim_bytes`` (the maximum size) and
    ``claim_replicas`` (the number of servers) apply when the bucket is created. Waits and timeouts are in seconds.
    """

    url: str = "nats://127.0.0.1:4222"
    user: str | None = None
    password: str | None = None
    credentials_file: str | None = None
    name: str = "trunkline"
    inbox_prefix: str = "_INBOX"
    dead_letters: str = "trunkline.dead.bus.{reason}"
    claims: str = "trunkline-claims"
    claim_threshold: int = 128 * 1024
    claim_ttl: float | None = 30 * 86400.0
    claim_bytes: int | None = None
    claim_replicas: int = 1
    connect_timeout: float = 5.0
    min_reconnect_wait: float = 0.05
    max_reconnect_wait: float = 0.3
    refused_wait: float = 1.5
    drain_timeout: float = 10.0

    def __repr__(self) -> str:
        return f"BusSettings(url={self.redacted_url!r}, name={self.name!r}, user={self.user!r})"

    @property
    def redacted_url(self) -> str:
        """The address without passwords, for logs and errors."""
        return re.sub(r"//[^@/,]*@", "//", self.url)

    @property
    def servers(self) -> list[str]:
        """The addresses of ``url``, as a list."""
        return [part.strip() for part in self.url.split(",") if part.strip()]
