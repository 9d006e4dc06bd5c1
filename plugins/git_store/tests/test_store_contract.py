"""The git store keeps the contract that every store is held to."""

from trunkline.contracts.memory.store import MemoryStore
from trunkline.testing.store_suite import StoreSuite
from trunkline_git_store.store import GitMemoryStore


class TestGitMemoryStore(StoreSuite):
    """Git, files and an index."""

    def store(self) -> MemoryStore:
        return GitMemoryStore()
