"""Makes the archive that an import sends to memory, from any file or folder that a person names.

An archive that Trunkline exported is sent unchanged, and a memory root is packed with its history. An importer converts
anything else. The conversion runs in the person's process; the memory worker reads archives of one format only.
"""

import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trunkline._util.archives.reader import read_manifest
from trunkline._util.private_folders import make_private
from trunkline.contracts.memory.archive_extraction import extract_archive
from trunkline.contracts.memory.import_conversion import convert_source
from trunkline.contracts.memory.importer import Importer, Source
from trunkline.contracts.memory.repository_archive import archive_repository, find_memory_root
from trunkline.errors import StorageError, TrunklineError

IGNORED_FOLDERS = frozenset(
    {".git", ".hg", "node_modules", "__pycache__", ".venv", "venv", ".cache", ".obsidian"}
)
"""The folders of programs, caches and repositories. Their files are not notes that a person wrote."""

MAX_FILES = 200_000
DEFAULT_BLOCK = "main"


@contextmanager
def prepare_import(
    source: Path,
    importers: Sequence[Importer],
    scratch: Path,
    *,
    kind: str | None = None,
    block: str | None = None,
) -> Iterator[Path]:
    """Yield an archive of ``source``. At the end of the block the archive is deleted, unless it is ``source`` itself.

    ``kind`` names the importer. Without it, the first importer that recognises the source converts it. ``block`` gets
    the conversations that name no block.

    Raises:
        TrunklineError: no importer recognises the source, or it is damaged.
        StorageError: the source does not exist, or cannot be read.
    """
    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
    make_private(scratch)
    with tempfile.TemporaryDirectory(prefix=".bring-", dir=scratch) as folder:
        try:
            ready = _prepare(source, importers, Path(folder), kind, block or DEFAULT_BLOCK)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise StorageError(f"{source} cannot be read, or not be unpacked: {reason}.") from error
        yield ready


def _prepare(
    source: Path, importers: Sequence[Importer], scratch: Path, kind: str | None, block: str
) -> Path:
    target = scratch / "archive.tar"
    if source.is_file():
        if kind is None and read_manifest(source) is not None:
            return source
        folder = scratch / "unpacked"
        make_private(folder)
        extract_archive(source, folder)
    else:
        folder = source
    if kind is None and (root := find_memory_root(folder)) is not None:
        archive_repository(root, target)
        return target
    name = source.stem if source.is_file() else source.resolve().name
    files = Source(folder, _plain_files(folder), name, block)
    convert_source(_choose_importer(importers, files, kind, source), files, target)
    return target


def _choose_importer(importers: Sequence[Importer], source: Source, kind: str | None, path: Path) -> Importer:
    names = ", ".join(sorted(importer.name for importer in importers)) or "none is installed"
    if kind is not None:
        chosen = [importer for importer in importers if importer.name == kind]
        if not chosen:
            raise TrunklineError(f"Nothing here imports from {kind!r}.", hint=f"Known are: {names}.")
        return chosen[0]
    for importer in importers:
        if importer.recognises(source):
            return importer
    raise TrunklineError(
        f"{path} is not recognised as a memory of any system.",
        hint=f"Name the system with --from ({names}), or bring plain files with: trunkline memory add",
    )


def _plain_files(folder: Path) -> Iterator[str]:
    """Yield the regular files below a folder. Links are not followed."""
    root = folder.resolve()
    waiting, count = [root], 0
    while waiting:
        for entry in sorted(waiting.pop().iterdir()):
            mode = entry.lstat().st_mode
            if stat.S_ISDIR(mode) and entry.name not in IGNORED_FOLDERS:
                waiting.append(entry)
            elif stat.S_ISREG(mode):
                count += 1
                if count > MAX_FILES:
                    raise TrunklineError(
                        f"{folder} holds more than {MAX_FILES} files.", hint="Name a folder in it."
                    )
                yield entry.relative_to(root).as_posix()
