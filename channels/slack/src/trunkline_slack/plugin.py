"""The Slack channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_slack.settings import SlackSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.slack]``."""
    return [trunkline.ConfigSection("channels", "slack", SlackSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``slack``."""
    from trunkline_slack.channel import SlackChannel

    return [SlackChannel(settings.section(SlackSettings))]
