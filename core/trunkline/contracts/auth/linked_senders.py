"""Linked senders: the people of chat services for whom a channel speaks as the owner, and the codes that link them.

A person sends a pairing code to the channel's account. The gateway compares it and keeps the link.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from trunkline.contracts.actors import OWNER
from trunkline_bus import BucketSpec, Payload

MOST_WRONG_OF_SENDER, MOST_WRONG_OF_CHANNEL = 3, 50
"""The number of wrong codes after which no further code of a sender, and of a channel, counts while a code waits. The
second is large, so that a stranger with few accounts cannot end the owner's code; a code has 39 bits."""

MOST_LINKED = 100
"""The number of linked senders of a channel."""

SenderId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class LinkedSender(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person of a chat service who is the owner. ``sender`` is the id that the service gave to the person, and
    ``place`` the chat for notices. ``code`` is the keyed hash of the code that linked the person.
    """

    sender: SenderId
    place: str
    name: str
    linked: datetime
    by: str
    code: str = ""


class PendingLink(msgspec.Struct, frozen=True, kw_only=True):
    """A code that waits, as a keyed hash."""

    mac: str
    expires: datetime
    by: str


class ChannelSenders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The linked senders of a channel with the codes that wait and the senders of wrong codes. One record, so that a
    code is used up in the same step in which it links.
    """

    linked: tuple[LinkedSender, ...] = ()
    codes: tuple[PendingLink, ...] = ()
    wrong: tuple[str, ...] = ()


SENDER_BUCKET: BucketSpec[ChannelSenders] = BucketSpec(
    name="senders",
    payload=ChannelSenders,
    max_bytes=4 * 1024 * 1024,
    description="By channel: the people of its chat service who are the owner, and the codes that link them",
)


class StartLinking(Payload, frozen=True, kw_only=True, tag="auth.senders-pair.v1"):
    """Ask for a code that links whoever sends it to the account of a channel."""

    channel: str
    actor: str = OWNER


class ListLinkedSenders(Payload, frozen=True, kw_only=True, tag="auth.senders.v1"):
    """Ask for the linked senders of a channel."""

    channel: str


class LinkedSenderList(Payload, frozen=True, kw_only=True, tag="auth.sender-list.v1"):
    """The linked senders of a channel, the oldest first."""

    senders: tuple[LinkedSender, ...] = ()


class UnlinkSender(Payload, frozen=True, kw_only=True, tag="auth.senders-unlink.v1"):
    """Remove a linked sender, and end the codes that wait: the channel serves the person no more."""

    channel: str
    sender: SenderId
    actor: str = OWNER


class LinkSender(Payload, frozen=True, kw_only=True, tag="gateway.sender-link.v1"):
    """Link the sender of a code to the owner. ``name`` is how the service calls the person."""

    code: Annotated[str, msgspec.Meta(max_length=100)]
    sender: SenderId
    place: Annotated[str, msgspec.Meta(max_length=200)]
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


class SenderLinked(Payload, frozen=True, kw_only=True, tag="gateway.sender-linked.v1"):
    """The end of an attempt to link: ``linked`` is true if the code counts. The reply does not say why it does not."""

    linked: bool


class GetLinkedSenders(Payload, frozen=True, kw_only=True, tag="gateway.senders.v1"):
    """Ask for the linked senders of the channel that asks."""
