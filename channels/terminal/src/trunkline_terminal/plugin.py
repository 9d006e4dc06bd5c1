"""The terminal channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_terminal.settings import TerminalSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.terminal]``."""
    return [trunkline.ConfigSection("channels", "terminal", TerminalSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``terminal``."""
    from trunkline_terminal.channel import TerminalChannel

    return [TerminalChannel(settings.section(TerminalSettings), settings.home)]
