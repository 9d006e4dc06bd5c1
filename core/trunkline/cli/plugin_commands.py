"""Commands that plugins bring. A plugin that fails costs its own commands only."""

import logging
from functools import cache

import click

from trunkline.errors import TrunklineError

log = logging.getLogger(__name__)


@cache
def plugin_commands() -> dict[str, click.Command]:
    """The plugins' commands by name. Without a usable configuration there are none."""
    from trunkline.config import load_config
    from trunkline.plugins import Plugins

    try:
        plugins = Plugins.load(load_config())
    except TrunklineError as error:
        log.debug("no commands of plugins: %s", error)
        return {}
    return {owned.item.name: owned.item for owned in plugins.commands() if owned.item.name}
