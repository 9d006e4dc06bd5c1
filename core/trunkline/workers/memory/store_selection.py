"""The selection of the memory store from the plugins, and of the store that makes the indexes of chunks and
documents.
"""

from trunkline.config.settings import DEFAULT_STORE
from trunkline.contracts.memory.chunk_index import IndexProvider
from trunkline.contracts.memory.store import MemoryStore
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins


def choose_store(plugins: Plugins, name: str | None) -> MemoryStore:
    """Return the store of the plugin ``name``, or of the default plugin.

    Raises:
        ConfigError: no plugin of that name provides a store.
    """
    wanted = name or DEFAULT_STORE
    for owned in plugins.memory_stores():
        if owned.owner == wanted:
            return owned.item
    why, hint = _absence(plugins, wanted)
    if name is None:
        raise ConfigError(
            f"Memory cannot start without its default store: {why}.",
            hint=hint
            or f"Run: trunkline plugins enable {DEFAULT_STORE}. If it is not installed, install it. Or name another "
            "store in [memory] store.",
        )
    raise ConfigError(
        f"Memory cannot start: [memory] store names a plugin that cannot be used: {why}.",
        hint=hint or f"Run: trunkline plugins list. Without the setting {DEFAULT_STORE} is used.",
    )


def _absence(plugins: Plugins, name: str) -> tuple[str, str]:
    """Return why a plugin provides no store, as the end of a sentence, and what to do, if known."""
    state = next((one for one in plugins.report.plugins if name in (one.owner, one.name)), None)
    if state is None:
        return f"{name} is not installed", ""
    if state.status == "loaded":
        return f"{name} offers no store", ""
    because = f" ({state.reason.rstrip('.')})" if state.reason else ""
    return f"{name} is {state.status}{because}", state.hint


def index_provider(plugins: Plugins, store: MemoryStore) -> IndexProvider:
    """Return the store that makes the indexes: ``store`` itself, or the first other store that can.

    Raises:
        ConfigError: no loaded plugin makes indexes.
    """
    for candidate in (store, *(owned.item for owned in plugins.memory_stores())):
        if isinstance(candidate, IndexProvider):
            return candidate
    why, hint = _absence(plugins, DEFAULT_STORE)
    raise ConfigError(
        "Memory cannot start: the store of [memory] store has no index of chunks and documents, and no other "
        f"plugin makes one; {why}.",
        hint=hint or f"Enable {DEFAULT_STORE}: it makes the indexes for other stores too.",
    )
