"""Memory stores: where memory is kept, and the rules and types that a store applies."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.memory.store import Change as Change
    from trunkline.contracts.memory.store import ChunkType as ChunkType
    from trunkline.contracts.memory.store import Installed as Installed
    from trunkline.contracts.memory.store import LinkType as LinkType
    from trunkline.contracts.memory.store import MemoryRule as MemoryRule
    from trunkline.contracts.memory.store import MemoryStore as MemoryStore
    from trunkline.contracts.memory.store import StoreContext as StoreContext
    from trunkline.workers.memory.log_record import MemoryRecord as MemoryRecord
    from trunkline.workers.memory.log_store import LogStore as LogStore
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
