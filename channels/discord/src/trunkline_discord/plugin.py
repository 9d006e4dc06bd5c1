"""The Discord channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_discord.settings import DiscordSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.discord]``."""
    return [trunkline.ConfigSection("channels", "discord", DiscordSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``discord``."""
    from trunkline_discord.channel import DiscordChannel

    return [DiscordChannel(settings.section(DiscordSettings))]
