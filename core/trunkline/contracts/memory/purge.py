"""Taking something out of memory and its history for good, and what is told of it: what is gone, what is kept and
where."""

from datetime import datetime

import msgspec

from trunkline.contracts.memory.operation import change
from trunkline_bus import Payload

PURGED = "[purged]"
"""What stands where words were that are purged."""

PURGE_LOG_PATH = "audit/purges.jsonl"
"""The file of memory in which purges are noted, a line each. What it names may not come back with an archive."""


class PurgeMemory(Payload, frozen=True, kw_only=True, tag="memory.purge.v1"):
    """Take out a file or folder (by its path), a chunk or a conversation (by its id), as if it had never been. Only the
    owner may.

    ``confirm`` repeats ``target``, so that nothing is purged by a slip; ``reason`` goes into the audit note.
    """

    target: str
    confirm: str
    actor: str
    reason: str = ""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages or lines that were erased, and their place."""

    where: str
    count: int


class RemainingCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that a purge left or could not reach. ``where`` is a path, a stream or a place in words, ``what`` is a
    sentence. It is gone ``until`` that time at the latest; None: until somebody takes it out. ``conversation``
    is the one that holds it, if one does.
    """

    where: str
    what: str
    until: datetime | None = None
    conversation: str = ""


class MemoryPurged(Payload, frozen=True, kw_only=True, tag="memory.purged.v1"):
    """The result of a purge.

    ``paths`` are gone from memory and from all of history, ``conversations`` are those among them. Of ``changed`` files
    a part is gone, in all of history too: lines of the audit log lost their content, what was learned lost a source.
    ``erased`` is what is gone from the streams and stores of the server, ``kept`` all that is left, and where.
    ``commits`` were written anew; ``version`` has the note in ``audit/purges.jsonl``.
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
