"""The plugin: its push sender."""

from collections.abc import Iterable

import trunkline
from trunkline.api.gateway import PushSender


@trunkline.hookimpl
def trunkline_push_senders() -> Iterable[PushSender]:
    """The sender. It imports what encrypts and connects when the first notice is sent."""
    from trunkline_push.web_push_sender import WebPushSender

    return [WebPushSender()]
