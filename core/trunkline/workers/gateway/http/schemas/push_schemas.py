"""The public schemas of push notices."""

from typing import Annotated

import msgspec

from trunkline.contracts.push.push_sender import PushOutcome
from trunkline.contracts.push.subscriptions import PushSubscription
from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class PushKeys(In, frozen=True, kw_only=True):
    """The keys of a subscription, in base64url as the browser's ``PushSubscription.toJSON`` has them."""

    p256dh: Annotated[str, msgspec.Meta(max_length=100)]
    auth: Annotated[str, msgspec.Meta(max_length=40)]


class NewPushSubscription(In, frozen=True, kw_only=True):
    """A browser that asks for notices: what its ``PushSubscription.toJSON`` has, a name for people, and the language of
    the notices, as a tag such as ``pt-BR``.
    """

    endpoint: Annotated[str, msgspec.Meta(max_length=2048)]
    keys: PushKeys
    label: Annotated[str, msgspec.Meta(max_length=100)] = ""
    language: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{2,35}$")] = "en"


class PushState(Out, frozen=True, kw_only=True):
    """The subscriptions of the caller's identity, the oldest first, and the key to which a browser binds a new one, in
    base64url. The key is empty where no plugin sends notices.
    """

    public_key: str
    subscriptions: tuple[PushSubscription, ...]


class RemovedPushSubscription(Out, frozen=True, kw_only=True):
    """The id of the subscription that was removed."""

    id: str


class PushTest(Out, frozen=True, kw_only=True):
    """The outcome of a test notice: the browser's vendor took it, has ended the subscription, or did not take it."""

    outcome: PushOutcome
