"""The plugin: declares its section and the compactor."""

from collections.abc import Iterable

import trunkline
from trunkline.api.turn import Compactor
from trunkline_compaction.settings import CompactionSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[plugins.compaction]``."""
    return [trunkline.ConfigSection("plugins", "compaction", CompactionSettings)]


@trunkline.hookimpl
def trunkline_compactors(settings: trunkline.PluginSettings) -> Iterable[Compactor]:
    """Yield the compactor."""
    from trunkline_compaction.compactor import SummaryCompactor

    return [SummaryCompactor(settings.section(CompactionSettings))]
