"""Backup and restore of a home: one tar archive.

It knows files and the archive's format. Memory is exported by its worker, so that the archive contains the state of one
commit.
::
    backup.json  README.txt  memory/…  memory/.git/…  trunkline.toml  [plugins.toml]  [token]  [bus/…]  end
"""

import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import trunkline
from trunkline._util.archives.manifest import SUMS
from trunkline._util.archives.reader import checksum_mismatches, copy_with_digest, safe_name
from trunkline.config import load_config
from trunkline.config.home_format import FORMAT_VERSION, read_format, require_known_format
from trunkline.errors import TrunklineError
from trunkline.home.paths import RESTORING, Home, make_folder, storage_errors
from trunkline.home.restore_transaction import RestorePlan, apply_plan, current_format, roll_back
from trunkline.home.run_file import instance_lock, lock_path
from trunkline.plugins.pins import FILE as PINS

SCHEMA = 1
"""The version of the archive format. It increases when an older Trunkline cannot read a newer archive; the older
Trunkline then refuses the archive.
"""

MANIFEST_MEMBER, END = "backup.json", "end"
"""The names of the first and the last member. tar itself does not detect an archive that was truncated between two
members.
"""

MEMORY, SETTINGS, TOKEN, BUS, README = "memory", "trunkline.toml", "token", "bus", "README.txt"
PARTS = (MEMORY, SETTINGS, PINS, TOKEN, BUS)
ASIDE = "replaced"


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a backup archive, its first member."""

    schema: int
    version: str
    created: datetime
    holds: tuple[str, ...]
    format: int = msgspec.field(default=0, name="form")
    """The format of the home (``config/home_format.py``); 0 if the backup is older than format numbers."""


@dataclass(slots=True)
class RestoreResult:
    """The restored parts, and the folder that the previous files were moved to."""

    label: BackupManifest
    aside: Path | None = None
    moved: list[str] = field(default_factory=list)


# Backup ------------------------------------------------------------------------------------------------------


def write_backup(home: Home, target: Path, exported: Path, *, token: bool, bus: bool) -> BackupManifest:
    """Write an archive to ``target``. The file appears when it is complete, and only its owner can read it.

    ``exported`` is an export of memory. With ``bus`` the embedded server's store is included.

    Raises:
        AlreadyRunning: ``bus`` is requested and the platform runs, so the bus store could change during the copy.
        StorageError: the archive cannot be written.
    """
    holds = [MEMORY]
    holds += [SETTINGS] if home.config_file.is_file() else []
    holds += (
        [PINS] if (home.path / PINS).is_file() else []
    )  # without it the accepted plugin manifests would be lost
    holds += [TOKEN] if token and home.token_file.is_file() else []
    holds += [BUS] if bus else []
    label = BackupManifest(
        schema=SCHEMA,
        version=trunkline.__version__,
        created=datetime.now(UTC),
        holds=tuple(holds),
        format=_home_format(home),
    )
    part = target.with_name(f".{target.name}.part")
    with storage_errors(target):
        try:
            with _private(part) as file, tarfile.open(fileobj=file, mode="w") as tar:
                _add(tar, MANIFEST_MEMBER, msgspec.json.encode(label))
                _copy(exported, tar)
                for name in (SETTINGS, PINS, TOKEN):
                    if name in holds:
                        _add(tar, name, (home.path / name).read_bytes())
                if bus:
                    with instance_lock(home):
                        _add_folder(tar, BUS, home.bus)
                _add(tar, END, b"")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return label


def _home_format(home: Home) -> int:
    mark = read_format(home.path)
    return mark.format if mark is not None else FORMAT_VERSION


@contextmanager
def _private(path: Path) -> Iterator[io.BufferedWriter]:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _copy(exported: Path, tar: tarfile.TarFile) -> None:
    with tarfile.open(exported) as source:
        for member in source:
            tar.addfile(member, source.extractfile(member) if member.isreg() else None)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(datetime.now(UTC).timestamp())
    tar.addfile(info, io.BytesIO(data))


def _add_folder(tar: tarfile.TarFile, name: str, folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            _add(tar, f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())


# Restore -----------------------------------------------------------------------------------------------------


def read_backup_manifest(archive: Path) -> BackupManifest:
    """Return the manifest of an archive.

    Raises:
        TrunklineError: the file is not a backup, or a newer version wrote the backup.
        StorageError: the file cannot be read.
    """
    with _opened(archive) as tar:
        return _label(tar, archive)


def restore_backup(home: Home, archive: Path, *, replace: bool = False) -> RestoreResult:
    """Unpack an archive into a home whose platform does not run.

    All files are first unpacked next to their final paths, so a damaged archive changes nothing. With ``replace``
    existing files are moved to ``replaced-<time>`` in the home and not deleted.

    Raises:
        AlreadyRunning: the platform runs on the home.
        NewerFormatError: a newer version wrote the home.
        ConfigError: this version does not know the archive's settings.
        TrunklineError: the archive is not a backup, is damaged, or was written by a newer version; or the home is not
            empty.
        StorageError: a file cannot be written.
    """
    read_backup_manifest(archive)
    require_known_format(home.path)
    with (
        _undo_folders_on_failure(home),
        instance_lock(home),
        storage_errors(home.path),
        tempfile.TemporaryDirectory(prefix=RESTORING, dir=home.path) as scratch,
    ):
        roll_back(home.path)
        with _opened(archive) as tar:
            restored = RestoreResult(_label(tar, archive))
            _unpack(tar, Path(scratch), archive)
        places = _places(home, Path(scratch), restored.label)
        moves_aside = _plan_moves_aside(home, places, restored, replace)
        moves_in = tuple((place, Path(scratch) / part) for part, place in places.items())
        plan = RestorePlan(
            out=moves_aside, into=moves_in, format=current_format(home.path), aside=restored.aside
        )
        apply_plan(home.path, plan, restored.label.format)
    return restored


@contextmanager
def _undo_folders_on_failure(home: Home) -> Iterator[None]:
    """Create the folders that a restore needs. If the restore fails, remove the folders that did not exist before."""
    lock = lock_path(home)
    new = [path for path in (home.run, home.path, *home.path.parents) if not path.exists()]
    locked = lock.exists()
    try:
        for folder in (home.path, home.run):
            make_folder(folder)
        yield
    except BaseException:
        if not locked:
            lock.unlink(missing_ok=True)
        for folder in new:
            with suppress(OSError):  # another process may have added a file in between
                folder.rmdir()
        raise


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except FileNotFoundError as error:
        if error.filename != str(archive):
            raise
        raise TrunklineError(f"There is no file {archive}.") from error
    except (tarfile.TarError, EOFError) as error:
        why = str(error).partition("\n")[0].rstrip(" :-.") or "it is truncated"
        raise _broken(archive, f"it is not a complete tar archive ({why})") from error


def _label(tar: tarfile.TarFile, archive: Path) -> BackupManifest:
    first = tar.next()
    data = tar.extractfile(first) if first is not None and first.name == MANIFEST_MEMBER else None
    try:
        label = msgspec.json.decode(data.read() if data else b"", type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise TrunklineError(
            f"{archive} is not a backup of Trunkline.",
            hint='"trunkline backup" writes backups. To import an export of memory: trunkline memory import.',
        ) from error
    if label.schema > SCHEMA or label.format > FORMAT_VERSION:
        raise TrunklineError(
            f"{archive} was made by Trunkline {label.version!r}, which is newer: format version {label.schema}, home "
            f"version {label.format}. This one, {trunkline.__version__}, supports up to {SCHEMA} and {FORMAT_VERSION}.",
            hint="Update Trunkline, then restore. Nothing was changed.",
        )
    return label


def _unpack(tar: tarfile.TarFile, folder: Path, archive: Path) -> None:
    """Unpack the regular files and folders of the known parts, and nothing else, because the archive is not trusted.

    Memory is checked against the checksums of its export. An older backup without checksums is not checked.
    """
    name, sums, digests = "", b"", dict[str, str]()
    for member in tar:
        name, path = member.name, safe_name(member)
        data = tar.extractfile(member)
        if name == SUMS and data is not None:
            sums = data.read()
        if path.parts[0] not in PARTS:
            continue
        target = folder / path
        make_folder(target if member.isdir() else target.parent)
        if data is not None:
            mode = 0o600 if path.parts[0] != MEMORY else 0o755 if member.mode & 0o100 else 0o644
            digests[name] = copy_with_digest(data, target, mode)
    if name != END:
        raise _broken(archive, "its end is missing")
    wrong = (
        [one for one in checksum_mismatches(sums, digests) if one.startswith(f"{MEMORY}/")] if sums else []
    )
    if wrong:
        raise _broken(archive, f"{wrong[0][:200]!r} has changed since the backup was made")


def _places(home: Home, scratch: Path, label: BackupManifest) -> dict[str, Path]:
    """Return the path of each part, according to the restored settings."""
    missing = [part for part in label.holds if not (scratch / part).exists()]
    if missing:
        raise TrunklineError(f"The backup is damaged: {', '.join(missing)} is missing from it.")
    memory = load_config(scratch).settings.runtime.memory_root
    if memory.is_relative_to(scratch):
        memory = home.path / memory.relative_to(scratch)
    _require_expected_place(memory.resolve(), home)
    places = {part: home.path / part for part in PARTS if (scratch / part).exists()}
    return {**places, MEMORY: memory}


def _require_expected_place(memory: Path, home: Home) -> None:
    """Refuse a path outside of the home that only the archive names.

    The archive is not trusted, so only this home's settings or the environment may name such a path.
    """
    if memory.is_relative_to(home.path.resolve()):
        return
    if memory != load_config(home.path).settings.runtime.memory_root.resolve():
        raise TrunklineError(
            f"The backup's settings put memory at {memory}, outside of {home.path}.",
            hint=f"To restore it there: TRUNKLINE_RUNTIME__MEMORY_ROOT='{memory}' trunkline restore ...",
        )


def _plan_moves_aside(
    home: Home, places: dict[str, Path], restored: RestoreResult, replace: bool
) -> tuple[tuple[Path, Path], ...]:
    """Return the folders to move aside, and their targets. The previous bus and derived files do not match the restored
    memory, so they are moved too.
    """
    wanted = [*places.values(), home.bus, home.cache]
    existing = [
        path for path in dict.fromkeys(wanted) if path.is_file() or (path.is_dir() and any(path.iterdir()))
    ]
    if existing and not replace:
        names = ", ".join(str(path) for path in existing)
        raise TrunklineError(
            f"{home.path} is not empty: {names}.",
            hint="Restore into another home (TRUNKLINE_HOME), or use --replace to move the contents aside.",
        )
    if existing:
        restored.aside = home.path / f"{ASIDE}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        make_folder(restored.aside)
    for path in dict.fromkeys(wanted):
        if path.is_dir() and path not in existing:
            path.rmdir()
    restored.moved = [path.name for path in existing]
    return tuple((path, restored.aside / path.name) for path in existing if restored.aside is not None)


def _broken(archive: Path, why: str) -> TrunklineError:
    return TrunklineError(
        f"{archive} cannot be used: {why}.", hint="Nothing was changed. Take another backup."
    )
