"""The request by which the owner tests, pauses and resumes a channel."""

from typing import Literal

from trunkline_bus import Payload

PAUSED_KEY = "paused"
"""The key of the record that a channel has while it is paused."""


class ControlChannel(Payload, frozen=True, kw_only=True, tag="channels.control.v1"):
    """Send a test notice through a channel (``test``), let it end (``pause``) or run again (``resume``)."""

    action: Literal["test", "pause", "resume"]
