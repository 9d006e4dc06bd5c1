"""The home version, a number in ``form.json``: reads and writes it. ``home/migration.py`` migrates.

A home without the file has version 0. A home that is absent or empty has no version.
"""

import os
from pathlib import Path

import msgspec

import trunkline
from trunkline.errors import StorageError

FORMAT_VERSION = 2
"""The home version that this program writes. Each step in ``migration_steps.py`` raises it."""

FORMAT_FILE = "form.json"
"""The name must not change: an older program reads this file to refuse a newer home. Without it, the program would take
the home for one of version 0 and migrate it."""


class NewerFormatError(StorageError):
    """A newer Trunkline wrote the home. This version could destroy data that it does not know."""


class FormatRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file: the home version, and the version of Trunkline that wrote it.

    The stored key is ``form``, which older programs read.
    """

    format: int = msgspec.field(name="form")
    version: str


def read_format(home: Path) -> FormatRecord | None:
    """Return the version record of a home; None when the home is not used yet.

    Raises:
        StorageError: the file exists and cannot be read.
    """
    try:
        return msgspec.json.decode((home / FORMAT_FILE).read_bytes(), type=FormatRecord)
    except (FileNotFoundError, NotADirectoryError):
        return FormatRecord(format=0, version="") if _is_used(home) else None
    except (OSError, msgspec.MsgspecError) as error:
        raise StorageError(
            f"{home / FORMAT_FILE} cannot be read: {error}.",
            hint="It holds the home version. Restore the file, or the home, from a backup.",
        ) from error


def require_known_format(home: Path, known: int = FORMAT_VERSION) -> None:
    """Check the home version and change nothing. Raises NewerFormatError when a newer version wrote the home, and
    StorageError.
    """
    mark = read_format(home)
    if mark is not None and mark.format > known:
        raise NewerFormatError(
            f"{home} was written by Trunkline {mark.version!r}, which is newer: it has home version "
            f"{mark.format}, and this one ({trunkline.__version__}) supports up to {known}.",
            hint="Update Trunkline, or restore a backup of before the update into another home. Nothing was changed.",
        )


def write_format(home: Path, format: int) -> None:
    """Write the version record atomically and durably. Raises OSError."""
    draft = home / f".{FORMAT_FILE}.{os.getpid()}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(FormatRecord(format=format, version=trunkline.__version__)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(home / FORMAT_FILE)
    folder = os.open(home, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_used(home: Path) -> bool:
    """Report whether the home contains data. Settings do not count, because they may be written before the first
    start.
    """
    parts = (home / part for part in ("memory", "bus", "workspaces"))
    return any(part.is_dir() and any(part.iterdir()) for part in parts)
