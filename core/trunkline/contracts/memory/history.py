"""The operations on the history of memory: the changes of a path, blame, differences and reverts."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from trunkline.contracts.memory.access import CallerAccess
from trunkline.contracts.memory.files import MEMORY_READ, ReadMemory
from trunkline.contracts.memory.operation import change, query
from trunkline.errors import ToolError
from trunkline_bus import Payload


class MemoryHistory(Payload, frozen=True, kw_only=True, tag="memory.history.v1"):
    """List the changes of a path, the newest first."""

    path: str
    limit: int = 50


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that changed the path.

    ``previous`` is the content before the commit; it is None if the file did not exist or was not text.
    ``conversation`` and ``turn`` name the conversation and turn that made the change, if any.
    """

    version: str
    message: str
    author: str
    timestamp: datetime
    previous: str | None = None
    conversation: str | None = None
    turn: str | None = None


class MemoryChanges(Payload, frozen=True, kw_only=True, tag="memory.changes.v1"):
    """The reply to ``MemoryHistory``: the changes, the newest first."""

    changes: tuple[MemoryChange, ...] = ()


class BlameMemory(Payload, frozen=True, kw_only=True, tag="memory.blame.v1"):
    """Find the commit that wrote each line of a file.

    ``version`` is a commit id; None is the last commit. Lines count from 1; ``last`` None is the last line. With
    ``mainline`` the reply names the commit that brought each line into this memory: an imported line belongs to the
    import and a moved line to the move, whatever the imported history says.
    """

    path: str
    version: str | None = None
    first: int = 1
    last: int | None = None
    mainline: bool = False


class BlamedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive lines that one commit wrote. ``first`` is the number of the first line and counts from 1.

    ``author`` is the actor of the commit. ``conversation`` and ``turn`` name the conversation and turn that made the
    commit, if any.
    """

    first: int
    lines: tuple[str, ...]
    version: str
    author: str
    conversation: str | None = None
    turn: str | None = None
    message: str = ""
    timestamp: datetime


class MemoryBlame(Payload, frozen=True, kw_only=True, tag="memory.blamed.v1"):
    """The reply to ``BlameMemory``: the commits of the lines of a file at ``version``, in the order of the lines."""

    path: str
    version: str
    spans: tuple[BlamedLines, ...] = ()


class DiffMemory(Payload, frozen=True, kw_only=True, tag="memory.diff.v1"):
    """Compare two versions of ``path``, which is a file or a folder ("" is all of memory).

    ``new`` None is the last commit. ``old`` None is the version before the last change of the path up to ``new``; the
    reply then shows what that change did.
    """

    path: str = ""
    old: str | None = None
    new: str | None = None


DifferenceKind = Literal["added", "changed", "deleted", "moved"]


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs between two versions. ``added`` and ``removed`` count lines; ``source`` is the former path of
    a moved file.
    """

    path: str
    kind: DifferenceKind
    added: int = 0
    removed: int = 0
    source: str | None = None


class MemoryDifference(Payload, frozen=True, kw_only=True, tag="memory.difference.v1"):
    """The differences between two versions.

    ``old`` "" is the state before the first commit. ``text`` is a unified diff. If the diff would be too long, ``text``
    leaves out some files and ``whole`` is False.
    """

    path: str
    old: str
    new: str
    files: tuple[FileDifference, ...] = ()
    text: str = ""
    whole: bool = True


class RevertMemory(Payload, frozen=True, kw_only=True, tag="memory.revert.v1"):
    """Revert a change of ``path`` by a new commit.

    ``version`` names the change to revert; None reverts the last change of ``path``. The path "" means all files that
    ``version`` changed. With ``to``, the path is restored to its state at that version instead.
    """

    path: str
    actor: str
    version: str | None = None
    to: str | None = None
    reason: str = ""


class MemoryReverted(Payload, frozen=True, kw_only=True, tag="memory.reverted.v1"):
    """The reply to ``RevertMemory``. ``version`` is the new commit. ``undone`` is the version that was reverted, or the
    version that was restored.
    """

    paths: tuple[str, ...]
    version: str
    undone: str


async def _shown_changes(access: CallerAccess, request: MemoryHistory, reply: MemoryChanges) -> MemoryChanges:
    return MemoryChanges(
        changes=tuple(
            replace(one, previous=None) if access.withholds(request.path, one.previous or "") else one
            for one in reply.changes
        )
    )


async def _shown_blame(access: CallerAccess, request: BlameMemory, reply: MemoryBlame) -> MemoryBlame:
    """A caller that may not see the file may not see its lines."""
    if access.depends_on_content(request.path):
        file = await access.send(MEMORY_READ, ReadMemory(path=request.path, version=request.version))
        if access.withholds(file.path, file.content):
            raise access.withheld(request.path)
    return reply


async def _shown_difference(
    access: CallerAccess, request: DiffMemory, reply: MemoryDifference
) -> MemoryDifference:
    if any(access.depends_on_content(path) for file in reply.files for path in _paths(file)):
        raise ToolError(
            f"{access.path_in_block(request.path)} contains learned data, which tools cannot compare.",
            kind="permission_denied",
        )
    return reply


def _paths(file: FileDifference) -> tuple[str, ...]:
    return (file.path,) if file.source is None else (file.path, file.source)


MEMORY_HISTORY = query(
    "history", MemoryHistory, MemoryChanges, "Changes of a path, with previous states.",
    ("gateway", "monitor", "tools", "operator"), extent="tree", filter=_shown_changes,
)  # fmt: skip
MEMORY_BLAME = query(
    "blame", BlameMemory, MemoryBlame, "The commit of each line of a file.",
    ("gateway", "monitor", "tools", "operator"), extent="file", filter=_shown_blame,
)  # fmt: skip
MEMORY_DIFF = query(
    "diff", DiffMemory, MemoryDifference, "The difference between two versions.",
    ("gateway", "monitor", "tools", "operator"), extent="tree", filter=_shown_difference,
)  # fmt: skip
MEMORY_REVERT = change(
    "revert", RevertMemory, MemoryReverted, "Revert a change, or restore a version.",
    ("gateway", "monitor", "tools", "operator"), extent="tree",
)  # fmt: skip
