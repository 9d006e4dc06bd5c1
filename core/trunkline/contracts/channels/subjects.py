"""The endpoints of channels, which tell the owner something and test or pause a channel, and the bucket of records."""

from trunkline.contracts.channels.channel_control import ControlChannel
from trunkline.contracts.channels.records import CHANNEL_BUCKET as CHANNEL_BUCKET
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline_bus import Endpoint, Subject

TELL_OWNER = Endpoint(
    "channels.tell", Subject("trunkline.cmd.channels.{channel}.tell-owner"), TellOwner, CommandSucceeded,
    doc="Send the owner a notice through this channel.",
)  # fmt: skip
CONTROL_CHANNEL = Endpoint(
    "channels.control", Subject("trunkline.cmd.channels.{channel}.control"), ControlChannel, CommandSucceeded,
    doc="Test, pause or resume this channel.",
)  # fmt: skip
