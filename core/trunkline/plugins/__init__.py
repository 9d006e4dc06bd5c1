"""Finding, loading and asking plugins, each apart from the others: what one breaks, the others do not feel."""

from trunkline.plugins.ownership import Owned
from trunkline.plugins.registry import Plugins
from trunkline.plugins.report import BrokenGuard, HookProblem, LoadReport, PluginState

__all__ = ["BrokenGuard", "HookProblem", "LoadReport", "Owned", "PluginState", "Plugins"]
