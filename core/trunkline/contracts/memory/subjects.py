"""The table of the memory worker's operations, and the topic of memory's changes.

The rows are below their request types; this module joins them.
"""
# ruff: noqa: F403  one table in several files; to list its names here again would be a second table

from typing import Any

from trunkline.contracts.conversations.branch import *
from trunkline.contracts.conversations.messages import *
from trunkline.contracts.documents.messages import *
from trunkline.contracts.memory.attachments import *
from trunkline.contracts.memory.check import *
from trunkline.contracts.memory.chunks import *
from trunkline.contracts.memory.files import *
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.history import *
from trunkline.contracts.memory.index import *
from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.purge import *
from trunkline.contracts.memory.search import *
from trunkline.contracts.memory.transfer import *
from trunkline_bus import Subject, Topic

MEMORY_OPERATIONS: tuple[MemoryOperation[Any, Any], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, MemoryOperation)
)
"""All operations of memory. An operation that is not in this table cannot be called."""

MEMORY_CHANGED: Topic[MemoryChanged] = Topic(
    name="memory changes", subject=Subject("trunkline.evt.memory.{part}.changed"), payload=MemoryChanged,
    doc="A commit was made: ``conversations`` if it changes only conversations, else ``files``.",
)  # fmt: skip
