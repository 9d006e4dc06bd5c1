"""The messages of a purge, which removes a text from memory and its history permanently and reports which copies
remain.
"""

from datetime import datetime

import msgspec

from trunkline.contracts.memory.operation import change
from trunkline_bus import Payload

PURGED = "[purged]"
"""The text that replaces purged content."""

PURGE_LOG_PATH = "audit/purges.jsonl"
"""The file of memory that records purges, one per line. An import never restores a text that this file names."""


class PurgeMemory(Payload, frozen=True, kw_only=True, tag="memory.purge.v1"):
    """Remove a file or folder (by its path), or a chunk or conversation (by its id), from memory and its history.

    Only the owner may purge. ``confirm`` must repeat ``target``; this prevents a purge by mistake. ``reason`` is
    recorded in the purge log.
    """

    target: str
    confirm: str
    actor: str
    reason: str = ""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """A place on the server from which a purge erased messages or lines, and their number."""

    where: str
    count: int


class RemainingCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A copy of purged text that the purge left or could not reach.

    ``where`` is a path, a stream or a description of the place; ``what`` is a sentence. The copy is deleted at
    ``until`` at the latest; if ``until`` is None, it stays until a person deletes it. ``conversation`` is the id of the
    conversation that holds the copy, if any.
    """

    where: str
    what: str
    until: datetime | None = None
    conversation: str = ""


class MemoryPurged(Payload, frozen=True, kw_only=True, tag="memory.purged.v1"):
    """The result of a purge.

    ``paths`` are removed from memory and from all of history; ``conversations`` are the conversations among them. From
    each file in ``changed`` a part is removed, in all of history too: lines of the audit log lose their content,
    learned items lose a source. ``erased`` lists what was erased from the streams and stores of the server. ``kept``
    lists the known copies that remain, with their places. ``commits`` is the number of rewritten commits. ``version``
    is the commit that records the purge in ``audit/purges.jsonl``.
    """

    paths: tuple[str, ...]
    commits: int
    version: str
    conversations: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    erased: tuple[Erased, ...] = ()
    kept: tuple[RemainingCopy, ...] = ()


MEMORY_PURGE = change(
    "purge", PurgeMemory, MemoryPurged, "Remove a text from memory and history for good. Only for the owner.",
    ("operator",), concurrency=1,
)  # fmt: skip
