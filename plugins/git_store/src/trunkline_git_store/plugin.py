"""The plugin: declares its store and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline.api.store import MemoryStore


@trunkline.hookimpl
def trunkline_memory_stores() -> Iterable[MemoryStore]:
    """The store that is used unless ``[memory] store`` names another one."""
    from trunkline_git_store.store import GitMemoryStore

    return [GitMemoryStore()]
