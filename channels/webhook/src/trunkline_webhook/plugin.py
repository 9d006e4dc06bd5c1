"""The webhook channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_webhook.settings import WebhookSettings, named_blocks


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.webhook]``."""
    return [trunkline.ConfigSection("channels", "webhook", WebhookSettings, blocks=named_blocks)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``webhook``."""
    from trunkline_webhook.channel import WebhookChannel

    return [WebhookChannel(settings.section(WebhookSettings), settings.home)]
