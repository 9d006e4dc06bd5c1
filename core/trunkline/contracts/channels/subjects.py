"""The endpoint of channels that sends the owner a notice which answers no message, and the bucket of their records."""

from trunkline.contracts.channels.records import CHANNEL_BUCKET as CHANNEL_BUCKET
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline_bus import Endpoint, Subject

TELL_OWNER = Endpoint(
    "channels.tell", Subject("trunkline.cmd.channels.{channel}.tell-owner"), TellOwner, CommandSucceeded,
    doc="Send the owner a notice through this channel.",
)  # fmt: skip
