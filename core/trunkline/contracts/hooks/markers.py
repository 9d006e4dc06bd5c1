"""pluggy's two markers, for the platform and for plugins."""

import pluggy

PROJECT = "trunkline"
"""The name of pluggy's project and of the entry point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook with the function's name."""
