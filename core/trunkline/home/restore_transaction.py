"""Moves restored files to their paths in a home, so that an interrupted restore can be rolled back.

A plan (``restoring.json``) is written before the first move and removed after the last. A process that later finds the
plan rolls the restore back. A move is a rename; between file systems it is a copy that is renamed when complete. So
each path has either all files or none.
"""

import errno
import os
import shutil
from pathlib import Path

import msgspec

from trunkline._util.private_folders import make_private
from trunkline.config.home_format import read_format, write_format
from trunkline.errors import StorageError

PLAN_FILE = "restoring.json"


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that a restore moves: first the previous ones to ``aside`` (``out``: path, target), then the restored
    ones into the home (``into``: path, source).
    """

    out: tuple[tuple[Path, Path], ...]
    into: tuple[tuple[Path, Path], ...]
    format: int | None = msgspec.field(name="form")
    aside: Path | None = None


def apply_plan(home: Path, plan: RestorePlan, format: int) -> None:
    """Carry out all moves and record the format. An OSError rolls all moves back."""
    _write(home / PLAN_FILE, msgspec.json.encode(plan, enc_hook=str))
    try:
        for place, away in plan.out:
            _move(place, away)
        for place, source in plan.into:
            if place.is_dir():
                place.rmdir()
            make_private(place.parent)
            _move(source, place)
        write_format(home, format)
    except OSError:
        roll_back(home)
        raise
    (home / PLAN_FILE).unlink()


def was_interrupted(home: Path) -> bool:
    """Report whether a restore was interrupted."""
    return (home / PLAN_FILE).is_file()


def roll_back(home: Path) -> bool:
    """Restore the state before an interrupted restore, and report whether there was one.

    Only the holder of the instance lock may call this function. Raises StorageError and OSError.
    """
    try:
        plan = msgspec.json.decode(
            (home / PLAN_FILE).read_bytes(), type=RestorePlan, dec_hook=lambda kind, text: kind(text)
        )
    except FileNotFoundError:
        return False
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"The restore plan {home / PLAN_FILE} cannot be read, so the interrupted restore cannot be undone.",
            hint=f"Move the folders replaced-<time> in {home} back by hand. Then remove the file.",
        ) from error
    replaced = {place for place, _ in plan.out}
    for place, _ in plan.into:
        if place not in replaced:
            _remove(place)
    for place, away in plan.out:
        if away.exists():
            _remove(place)
            _move(away, place)
    if plan.format is not None:
        write_format(home, plan.format)
    if plan.aside is not None and plan.aside.is_dir() and not any(plan.aside.iterdir()):
        plan.aside.rmdir()
    (home / PLAN_FILE).unlink()
    return True


def current_format(home: Path) -> int | None:
    """Return the format of a home; None if the home is empty."""
    mark = read_format(home)
    return None if mark is None else mark.format


def _move(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = target.with_name(f".moving-{target.name}")
        _remove(draft)
        if source.is_dir():
            shutil.copytree(source, draft, symlinks=True)
        else:
            shutil.copy2(source, draft)
        draft.rename(target)
        _remove(source)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name}")
    with draft.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
