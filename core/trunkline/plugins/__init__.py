"""Finding, loading and asking plugins, each apart from the others: what one breaks, the others do not feel."""

from trunkline.plugins.owned import Owned
from trunkline.plugins.plugins import Plugins
from trunkline.plugins.report import BrokenGuard, LoadReport, PluginState, Trouble

__all__ = ["BrokenGuard", "LoadReport", "Owned", "PluginState", "Plugins", "Trouble"]
