"""The Matrix channel as a plugin: its hooks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.channel import Channel
from trunkline_matrix.settings import MatrixSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[channels.matrix]``."""
    return [trunkline.ConfigSection("channels", "matrix", MatrixSettings)]


@trunkline.hookimpl
def trunkline_channels(settings: trunkline.PluginSettings) -> Iterable[Channel]:
    """The channel ``matrix``."""
    from trunkline_matrix.channel import MatrixChannel

    return [MatrixChannel(settings.section(MatrixSettings))]
