"""Checks of the machine and the home folder."""

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path

from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.config.home_format import FORMAT_VERSION, read_format, require_known_format
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import StorageError
from trunkline.home.kill_switch import RELEASE_COMMAND, KillSwitch

OLDEST_PYTHON = (3, 11)
MIB = 1024 * 1024
LOW_SPACE, CRITICAL_SPACE = 1024 * MIB, 50 * MIB


def python_version() -> HealthResult:
    """python.version: the version is 3.11 or later."""
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info) >= OLDEST_PYTHON:
        return ok(f"Python {version}")
    return failure(f"Python {version} is too old.", "Install Python 3.11 or later.")


async def home_writable(context: CheckContext) -> HealthResult:
    """home.writable: the home folder can be written, or created in the nearest folder above it."""
    for folder in (context.home.path, context.home.memory, context.home.workspaces):
        there = nearest_existing(folder)
        if not there.is_dir():
            return failure(
                f"{there} is a file, so {folder} cannot be created.", "Move it, or set TRUNKLINE_HOME."
            )
        if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
            return failure(f"{there} cannot be written.", "Make it writable for you, or set TRUNKLINE_HOME.")
    return ok(f"{context.home.path} can be written")


async def home_version(context: CheckContext) -> HealthResult:
    """home.version: this version can read the files of the home."""
    try:
        require_known_format(context.home.path)
        mark = read_format(context.home.path)
    except StorageError as error:
        return failure(error.sentence, error.hint)
    if mark is None:
        return ok("The first start creates the home")
    if mark.format < FORMAT_VERSION:
        return ok(f"The home has version {mark.format}; the next start migrates it to {FORMAT_VERSION}")
    return ok(f"The home has version {mark.format}")


async def home_permissions(context: CheckContext) -> HealthResult | None:
    """home.permissions: no other user can list the folders that hold secrets and data."""
    open_ones = [
        folder
        for folder in (context.home.path, context.home.run, context.home.bus)
        if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077
    ]
    if not context.home.path.is_dir():
        return None
    if open_ones == [context.home.path] or not open_ones:
        others = (
            "" if not open_ones else " (other users can list the folder, but they cannot read its secrets)"
        )
        return ok(f"Only you can read secrets{others}")
    names = ", ".join(map(str, open_ones))
    cure = f"Run: chmod 700 {shlex.join(map(str, open_ones))}"
    return warning(f"Other users of this machine can list {names}.", cure)


async def disk_space(context: CheckContext) -> HealthResult:
    """disk.space: the disks of the home, of memory and of the embedded server have free space."""
    home = context.home
    rooms = {
        folder: shutil.disk_usage(folder).free
        for folder in map(nearest_existing, (home.path, home.memory, home.bus))
    }
    folder = min(rooms, key=lambda one: rooms[one])
    free = rooms[folder]
    summary = f"{free // MIB} MiB are free on the disk of {folder}"
    if free < CRITICAL_SPACE:
        return failure(f"Only {summary}.", "Free some space; soon nothing can be stored.")
    return warning(f"Only {summary}.", "Free some space.") if free < LOW_SPACE else ok(summary)


def nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(one for one in (folder, *folder.parents) if one.exists())


async def panic_released(context: CheckContext) -> HealthResult | None:
    """panic.released: ``trunkline panic`` is not in effect."""
    pulled = KillSwitch(context.home.path).read()
    if pulled is None:
        return ok("Panic is not in effect")
    since = f" since {pulled.at}" if pulled.at else ""
    return failure(
        f"Panic is in effect{since}: no tool runs and no model is called.",
        f'Release it: "{RELEASE_COMMAND}".',
    )
