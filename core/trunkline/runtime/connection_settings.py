"""The settings of the bus connection and of the embedded server, from the configuration. Opens no connection."""

from pathlib import Path

import msgspec

from trunkline.config import Config
from trunkline.contracts.topology import claim_store_spec
from trunkline.contracts.workers.subjects import DEAD_LETTER_SUBJECT
from trunkline_bus import (
    BusError,
    BusSettings,
    ConnectionFailed,
    LeafListener,
    LeafRemote,
    ServerSettings,
    ServerTooOld,
    ServerUser,
)

DEFAULT_URL = "nats://127.0.0.1:4222"
DEFAULT_INBOX_PREFIX = "_INBOX"

MAX_STORE = 1 << 40
"""Bytes that the embedded server may store. The number exceeds any disk, so the disk is the limit. By default the
server refuses streams whose limits add up to more than three quarters of the free space, and would not start with 1 GB
free."""


def server_settings(
    config: Config,
    store: Path,
    *,
    listener: LeafListener | None = None,
    hub: LeafRemote | None = None,
    users: tuple[ServerUser, ...] = (),
) -> ServerSettings:
    """Return the settings of the embedded server.

    ``listener`` is the listener for the leaf nodes of remotes, ``hub`` the connection to a hub, ``users`` are the
    users of isolated plugins.
    """
    sync = config.settings.bus.sync_interval
    return ServerSettings(
        store_dir=store, max_store=MAX_STORE, sync=sync, leaf_listener=listener, hub=hub, users=users
    )


def bus_settings(
    config: Config, *, url: str | None = None, user: str | None = None, password: str | None = None
) -> BusSettings:
    """Return the settings of a connection to ``url``, or to the configured server with its credentials.

    Raises:
      ConfigError: the password's environment variable is not set.
    """
    bus, credentials = config.settings.bus, None
    claims = claim_store_spec(config.settings.retention)
    if url is None:
        url, user = bus.url or DEFAULT_URL, bus.user
        password = bus.password.reveal(config.environ) if bus.password is not None else None
        credentials = str(bus.credentials_file) if bus.credentials_file is not None else None
    return BusSettings(
        url=url,
        user=user,
        password=password,
        credentials_file=credentials,
        inbox_prefix=config.settings.bus.inbox_prefix.replace("{user}", user or ""),
        dead_letters=DEAD_LETTER_SUBJECT,
        claims=claims.name,
        claim_ttl=claims.ttl,
        claim_bytes=claims.max_bytes,
        claim_replicas=config.settings.bus.replicas,
    )


def with_own_inbox(settings: BusSettings, who: str) -> BusSettings:
    """Return the settings with a separate inbox prefix below ``_INBOX`` for ``who``, unless a prefix is configured.

    All workers share one NATS user. With separate prefixes a remote can be permitted to answer only one kind of worker.
    """
    if settings.inbox_prefix != DEFAULT_INBOX_PREFIX:
        return settings
    return msgspec.structs.replace(settings, inbox_prefix=f"{DEFAULT_INBOX_PREFIX}.{who}")


def connection_hint(error: BusError) -> str:
    """Return the remedy for a server that cannot be used; "" when there is none to suggest."""
    if isinstance(error, ServerTooOld):
        return "Install a newer nats-server there, or leave out bus.url to use the one that comes with Trunkline."
    if isinstance(error, ConnectionFailed) and "authorization" in str(error).lower():
        return (
            "Look at bus.user and bus.password (TRUNKLINE_BUS__USER and __PASSWORD): the server refuses them."
        )
    if isinstance(error, ConnectionFailed):
        return "Is a server running there? bus.url (TRUNKLINE_BUS__URL) names its address."
    return ""
