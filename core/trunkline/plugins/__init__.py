"""Discovers, checks and loads plugins, and calls their hooks. A failure of one plugin does not affect the others."""

from trunkline.plugins.ownership import OwnedItem
from trunkline.plugins.registry import Plugins
from trunkline.plugins.report import BrokenGuard, HookProblem, LoadReport, PluginState

__all__ = ["BrokenGuard", "HookProblem", "LoadReport", "OwnedItem", "PluginState", "Plugins"]
