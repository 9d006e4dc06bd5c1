"""Leaf nodes in a server's configuration: the listener of a hub, and the connection of a leaf node to a hub.

This module only writes configuration text and reads the named files. The permissions of leaf nodes are decided
elsewhere.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

PING_CONFIG = 'ping_interval: "3s"\nping_max: 2\n'
"""The ping settings with which a server closes a dead leaf connection after about ten seconds, so that a call to that
leaf fails instead of waiting.
"""


class LeafUser(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf node that may connect: its public key and the subjects that it may publish and subscribe to."""

    key: str
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()


class LeafListener(msgspec.Struct, frozen=True, kw_only=True):
    """The listener for leaf nodes, over TLS only. ``listen`` is ``host:port``. ``users`` returns the leaf nodes that
    may connect now.
    """

    listen: str
    certificate: Path
    key: Path
    users: Callable[[], Sequence[LeafUser]]


class LeafRemote(msgspec.Struct, frozen=True, kw_only=True):
    """The connection to a hub.

    It has the hub's address, the file with the secret key of this node, the certificate that must have signed the hub's
    certificate, and the JetStream ``domain`` that separates this node's streams from the hub's.
    """

    url: str
    seed_file: Path
    authority: Path
    domain: str


def listener_config(listener: LeafListener) -> str:
    """Return the ``leafnodes`` block of a hub."""
    tls = f"tls {{ cert_file: {_text(listener.certificate)}, key_file: {_text(listener.key)}, timeout: 5 }}"
    return f"{PING_CONFIG}leafnodes {{ listen: {_text(listener.listen)}, {tls} }}\n"


def remote_config(hub: LeafRemote) -> str:
    """Return the ``leafnodes`` block of a leaf node."""
    seed = hub.seed_file.read_text().strip()
    tls = f"tls {{ ca_file: {_text(hub.authority)}, timeout: 5 }}"
    remote = f"{{ url: {_text(hub.url)}, nkey: {seed}, {tls} }}"
    return f'{PING_CONFIG}leafnodes {{ reconnect: "1s", remotes: [ {remote} ] }}\n'


def user_entries(users: Sequence[LeafUser]) -> Iterator[str]:
    """Yield each leaf node as an entry of ``users``."""
    for user in users:
        allow = ", ".join(
            f"{verb}: {{ allow: {json.dumps(list(subjects))} }}"
            for verb, subjects in (("publish", user.publish), ("subscribe", user.subscribe))
        )
        yield f"{{ nkey: {user.key}, permissions: {{ {allow} }} }}"


def _text(value: object) -> str:
    return json.dumps(str(value))
