"""The Telegram channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_telegram.settings import TelegramSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.telegram]``."""
    return [trunkline.ConfigSection("channels", "telegram", TelegramSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``telegram``."""
    from trunkline_telegram.channel import TelegramChannel

    return [TelegramChannel(settings.section(TelegramSettings), home=settings.home)]
