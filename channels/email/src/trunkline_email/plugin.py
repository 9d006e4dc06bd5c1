"""The e-mail channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_email.settings import EmailSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.email]``."""
    return [trunkline.ConfigSection("channels", "email", EmailSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``email``."""
    from trunkline_email.channel import EmailChannel

    return [EmailChannel(settings.section(EmailSettings))]
