"""The built-in store keeps the contract that every store is held to."""

from trunkline.abc.memory import MemoryStore
from trunkline.memory.store import GitMemoryStore
from trunkline.testing.store_suite import StoreSuite


class TestGitMemoryStore(StoreSuite):
    """Git, files and an index."""

    def store(self) -> MemoryStore:
        return GitMemoryStore()
