"""The address of the bus, and the limits of a connection. Plain data."""

import re

import msgspec

MINIMUM_SERVER = (2, 14)
"""The oldest nats-server whose features Trunkline stands on."""


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one connection.

    ``url`` may name several servers, separated by commas. ``name`` fills ``Envelope.source``. ``inbox_prefix`` is
    the first part of reply subjects, so that an account can grant it per worker. ``dead_letters`` is a subject
    template with the key ``reason``. ``claims`` is the object bucket of payloads above ``claim_threshold`` bytes,
    kept for ``claim_ttl`` seconds (None: for ever), at most ``claim_bytes`` of them, on ``claim_replicas`` servers;
    these count when the bucket has to be made. Waits and timeouts are in seconds.
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
        """The address without any password in it, fit for logs and errors."""
        return re.sub(r"//[^@/,]*@", "//", self.url)

    @property
    def servers(self) -> list[str]:
        """The addresses one by one."""
        return [part.strip() for part in self.url.split(",") if part.strip()]
