"""Chooses the memory store among those of the plugins, and who makes the indexes of chunks and documents."""

from trunkline.contracts.memory.chunk_index import IndexProvider
from trunkline.contracts.memory.store import MemoryStore
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins

DEFAULT_STORE = "trunkline-git-store"
"""The plugin whose store is used when ``[memory] store`` names none."""


def choose_store(plugins: Plugins, name: str | None) -> MemoryStore:
    """Return the store of the plugin ``name``, or of the default one.

    Raises:
        ConfigError: no plugin of that name offers a store.
    """
    wanted = name or DEFAULT_STORE
    for owned in plugins.memory_stores():
        if owned.owner == wanted:
            return owned.item
    why = _absence(plugins, wanted)
    if name is None:
        raise ConfigError(
            f"Memory cannot start: {why}, which keeps memory by default.",
            hint="Run: trunkline plugins list. Enable or install that plugin, or name another one in [memory] store.",
        )
    raise ConfigError(
        f"Memory cannot start: [memory] store names a plugin that cannot be used: {why}.",
        hint=f"Run: trunkline plugins list. Without the setting {DEFAULT_STORE} is used.",
    )


def _absence(plugins: Plugins, name: str) -> str:
    """Return why a plugin provides no store, as the end of a sentence."""
    for state in plugins.report.plugins:
        if name in (state.owner, state.name):
            return f"{name} offers no store" if state.status == "loaded" else f"{name} is {state.status}"
    return f"{name} is not installed"


def index_provider(plugins: Plugins, store: MemoryStore) -> IndexProvider:
    """Return what makes the indexes of a store: the store itself, or the first other one that can.

    Raises:
        ConfigError: no loaded plugin makes indexes.
    """
    for candidate in (store, *(owned.item for owned in plugins.memory_stores())):
        if isinstance(candidate, IndexProvider):
            return candidate
    raise ConfigError(
        "Memory cannot start: the store of [memory] store has no index of chunks and documents, and no other "
        f"plugin makes one; {_absence(plugins, DEFAULT_STORE)}.",
        hint=f"Run: trunkline plugins list. Enable {DEFAULT_STORE}: it makes the indexes for other stores too.",
    )
