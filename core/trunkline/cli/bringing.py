"""Which files ``trunkline memory add`` brings, and where they go. Looks at a disk; asks no memory.

Text in UTF-8 is brought; binary, broken, hidden and linked files are not, and it is said why.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trunkline.errors import StorageError

LARGEST = 4 * 1024 * 1024
BATCH_FILES = 100
BATCH_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Brought:
    """A text file and the path in memory that it gets."""

    source: Path
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not brought, and why."""

    source: Path
    reason: str


def folder_for(block: str | None) -> str:
    """Where in memory documents go: for all blocks, or for one."""
    return "documents" if block is None else f"blocks/{block}/documents"


def find(source: Path, folder: str) -> Iterator[tuple[Path, str]]:
    """The files of a file or folder with their paths in memory, sorted; hidden ones and links are left out.

    Raises:
        StorageError: nothing is there, or it may not be read.
    """
    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
    if source.is_file():
        yield source, f"{folder}/{source.name}"
        return
    base = f"{folder}/{source.resolve().name}" if source.resolve().name else folder
    for here, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(here) / name
            if not name.startswith(".") and not file.is_symlink() and file.is_file():
                yield file, f"{base}/{file.relative_to(source).as_posix()}"


def bring(source: Path, target: str) -> Brought | Skipped:
    """Read one file."""
    try:
        if source.stat().st_size > LARGEST:
            return Skipped(source, f"it is larger than {LARGEST // 1024 // 1024} MB")
        data = source.read_bytes()
        target.encode("utf-8")
    except OSError as error:
        return Skipped(source, (error.strerror or "it cannot be read").lower())
    except UnicodeEncodeError:
        return Skipped(source, "its name is not valid text")
    if b"\0" in data:
        return Skipped(source, "it is binary, not text")
    try:
        return Brought(source, target, data.decode("utf-8"))
    except UnicodeDecodeError:
        return Skipped(source, "it is not text in UTF-8")


def batches(found: list[tuple[Path, str]], skipped: list[Skipped]) -> Iterator[list[Brought]]:
    """Read the files in portions that make one commit each; what cannot be brought goes to ``skipped``."""
    batch: list[Brought] = []
    size = 0
    for source, target in found:
        one = bring(source, target)
        if isinstance(one, Skipped):
            skipped.append(one)
            continue
        batch.append(one)
        size += len(one.text)
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
