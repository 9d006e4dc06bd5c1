"""Push subscriptions at rest, and as people see them."""

import hashlib
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from trunkline_bus import Payload

MOST_SUBSCRIPTIONS = 10
"""The largest number of push subscriptions of one identity."""


class PushSubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A browser that asked for notices: whose it is, where its vendor receives them, and in which language they are.

    ``token`` is the access token of the session that asked; the subscription ends with it. ``mac`` is a keyed hash of
    all of this (``runtime/auth``): without the key of the home nobody can have notices sent to another address.
    """

    id: str
    identity: str
    token: str
    endpoint: str
    p256dh: bytes
    auth: bytes
    created: datetime
    label: str = ""
    language: str = "en"
    mac: str = ""


class PushSubscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A push subscription as its identity sees it. ``host`` is that of the browser's vendor."""

    id: str
    host: str
    created: datetime
    label: str = ""


class PushClaim(Payload, frozen=True, kw_only=True, tag="push.claim.v1"):
    """A gateway sends a subscription the notice of an approval. The key of the record names both."""


def subscription_id(endpoint: str) -> str:
    """Return the id of a subscription by its address, so that a browser has one only. It is a hash of the address."""
    return f"push_{hashlib.sha256(endpoint.encode()).hexdigest()[:20]}"


def subscription_view(record: PushSubscriptionRecord) -> PushSubscription:
    """Return a subscription as its identity sees it, without the address and the keys."""
    return PushSubscription(id=record.id, host=push_host(record), created=record.created, label=record.label)


def push_host(record: PushSubscriptionRecord) -> str:
    """Return the host of the vendor's service: all of the address that a log or a list may have."""
    return urlsplit(record.endpoint).hostname or ""
