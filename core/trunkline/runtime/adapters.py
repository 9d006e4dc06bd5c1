"""The boot phase "adapter config" (PA-F44): plugins' sections can be read, and the chosen adapter is there."""

import logging
from collections.abc import Iterable

from trunkline.config import Config
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins

log = logging.getLogger(__name__)


def check_adapters(config: Config, extra: Iterable[object]) -> None:
    """See that every plugin's section can be read and that the configured model adapter exists. No network.

    A section that belongs to no plugin is a gap and only logged: a plugin may be taken out at any time (SWAP-3).

    Raises:
        ConfigError: a section has a setting that is unknown or wrong, or there is no such adapter.
    """
    plugins = Plugins.load(config, extra=extra)
    for owned in plugins.config_sections():
        config.section(owned.item.table, owned.item.name, owned.item.type)
    for problem in plugins.config_problems():
        log.warning("%s", problem)
    wanted = config.settings.runtime.provider_adapter
    names = sorted(owned.item.name for owned in plugins.models())
    if wanted not in ("auto", *names):
        raise ConfigError(
            f"There is no model adapter {wanted!r} that can be used ({config.origins['runtime.provider_adapter']}).",
            hint=f"Give it its settings in [adapters.{wanted}], or choose one of {', '.join(['auto', *names])}.",
        )
