"""The messages of the export and the import of memory."""

from typing import Literal

import msgspec

from trunkline._util.archives.manifest import ImportGap
from trunkline.contracts.memory.operation import MemoryOperation, query, stream
from trunkline_bus import Payload


class ExportMemory(Payload, frozen=True, kw_only=True, tag="memory.export.v1"):
    """Write an archive of all of memory, with its history, to the bus's object store.

    ``derived`` includes the search index. An import does not need the index, because memory can rebuild it.
    """

    derived: bool = False


class MemoryExport(Payload, frozen=True, kw_only=True, tag="memory.export-done.v1"):
    """The reply to ``ExportMemory``. ``object`` is the name of the archive in the bucket ``exports``; ``size`` is in
    bytes.
    """

    object: str
    size: int
    files: int


class ImportMemory(Payload, frozen=True, kw_only=True, tag="memory.import.v1"):
    """Import the archive ``object`` of the bucket ``imports``.

    ``merge`` keeps the content of this memory and adds the content of the archive. ``restore`` makes this memory equal
    to the archive. Both modes keep all earlier states in history. Without ``settings`` an import changes neither the
    permissions of agents nor the private files of another agent. With ``dry_run`` nothing is changed.
    """

    object: str
    actor: str
    mode: Literal["merge", "restore"] = "merge"
    settings: bool = False
    dry_run: bool = False


class ImportProgress(Payload, frozen=True, kw_only=True, tag="memory.import-progress.v1"):
    """The progress of an import. The unit of ``done`` and ``total`` depends on ``stage``: bytes for ``unpacking``,
    objects for ``checking`` and ``packing``, files for ``writing``.
    """

    stage: str
    done: int = 0
    total: int = 0


class ImportConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that both memories changed. History has the imported text at ``version``, unless ``what`` names another
    place.
    """

    path: str
    what: str
    version: str


class MemoryImport(Payload, frozen=True, kw_only=True, tag="memory.import-done.v1"):
    """The result of an import.

    ``version`` is the commit that the import made. ``commits`` is the number of imported commits. ``added``,
    ``changed`` and ``removed`` count files. ``joined`` are the paths of conversations whose messages were merged from
    both memories. ``conflicts`` are files that a person should look at. ``gaps`` are requirements of the imported
    memory that this installation does not meet.
    """

    system: str
    version: str
    commits: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    joined: tuple[str, ...] = ()
    conflicts: tuple[ImportConflict, ...] = ()
    gaps: tuple[ImportGap, ...] = ()
    dry_run: bool = False

    @property
    def idle(self) -> bool:
        """Report whether the import had nothing to change."""
        return not (self.commits or self.added or self.changed or self.removed or self.joined)


MEMORY_EXPORT = query(
    "export",
    ExportMemory,
    MemoryExport,
    "Everything, in one archive.",
    ("gateway", "tools", "operator"),
    concurrency=2,
)
MEMORY_IMPORT: MemoryOperation[ImportMemory, ImportProgress | MemoryImport] = stream(
    "import", ImportMemory, ImportProgress | MemoryImport,  # type: ignore[arg-type]
    "Import an archive: the progress, then the report.", ("gateway", "tools", "operator"),
)  # fmt: skip
