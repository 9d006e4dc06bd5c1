"""Leaf nodes in a server's configuration: a door for other hosts, and the way to such a door. Text only, no I/O but
reading the files that are named. What a guest may say is decided elsewhere."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

PING_CONFIG = 'ping_interval: "3s"\nping_max: 2\n'
"""A leaf that lost its line is forgotten after about ten seconds, so that a call to it fails instead of waiting."""


class LeafUser(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf node that is let in: its public key and the subjects that it may publish to and subscribe to."""

    key: str
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()


class LeafListener(msgspec.Struct, frozen=True, kw_only=True):
    """The listener for leaf nodes, by TLS only. ``listen`` is ``host:port``; ``guests`` returns the permitted
    ones at any time."""

    listen: str
    certificate: Path
    key: Path
    guests: Callable[[], Sequence[LeafUser]]


class LeafRemote(msgspec.Struct, frozen=True, kw_only=True):
    """The way to a hub's door: its address, the file with our secret key, the certificate that the hub's must be
    signed by, and the ``domain`` under which our own streams are apart from the hub's."""

    url: str
    seed_file: Path
    authority: Path
    domain: str


def listener_config(door: LeafListener) -> str:
    """The ``leafnodes`` block of a hub."""
    tls = f"tls {{ cert_file: {_text(door.certificate)}, key_file: {_text(door.key)}, timeout: 5 }}"
    return f"{PING_CONFIG}leafnodes {{ listen: {_text(door.listen)}, {tls} }}\n"


def remote_config(way: LeafRemote) -> str:
    """The ``leafnodes`` block of a leaf."""
    seed = way.seed_file.read_text().strip()
    tls = f"tls {{ ca_file: {_text(way.authority)}, timeout: 5 }}"
    remote = f"{{ url: {_text(way.url)}, nkey: {seed}, {tls} }}"
    return f'{PING_CONFIG}leafnodes {{ reconnect: "1s", remotes: [ {remote} ] }}\n'


def user_entries(guests: Sequence[LeafUser]) -> Iterator[str]:
    """Each guest as an entry of ``users``."""
    for guest in guests:
        allow = ", ".join(
            f"{verb}: {{ allow: {json.dumps(list(subjects))} }}"
            for verb, subjects in (("publish", guest.publish), ("subscribe", guest.subscribe))
        )
        yield f"{{ nkey: {guest.key}, permissions: {{ {allow} }} }}"


def _text(value: object) -> str:
    return json.dumps(str(value))
