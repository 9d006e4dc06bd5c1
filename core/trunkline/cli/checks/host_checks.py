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
    """python.version: at least 3.11."""
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info) >= OLDEST_PYTHON:
        return ok(f"Python {version}")
    return failure(f"Python {version} is too old.", "Install Python 3.11 or later.")


async def home_writable(patient: CheckContext) -> HealthResult:
    """home.writable: the home folder, or the nearest one above it, can be written."""
    for folder in (patient.home.path, patient.home.memory, patient.home.workspaces):
        there = nearest_existing(folder)
        if not there.is_dir():
            return failure(
                f"{there} is a file, so {folder} cannot be made.", "Move it, or set TRUNKLINE_HOME."
            )
        if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
            return failure(f"{there} cannot be written.", "Make it writable for you, or set TRUNKLINE_HOME.")
    return ok(f"{patient.home.path} can be written")


async def home_form(patient: CheckContext) -> HealthResult:
    """home.form: this version knows the form in which the home is written."""
    try:
        require_known_format(patient.home.path)
        mark = read_format(patient.home.path)
    except StorageError as error:
        return failure(error.sentence, error.hint)
    if mark is None:
        return ok("The home is begun on the first start")
    if mark.form < FORMAT_VERSION:
        return ok(f"The home is of form {mark.form}; the next start brings it to {FORMAT_VERSION}")
    return ok(f"The home is of form {mark.form}")


async def home_permissions(patient: CheckContext) -> HealthResult | None:
    """home.permissions: nobody else can look into the folders that hold secrets and data."""
    open_ones = [
        folder
        for folder in (patient.home.path, patient.home.run, patient.home.bus)
        if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077
    ]
    if not patient.home.path.is_dir():
        return None
    if open_ones == [patient.home.path] or not open_ones:
        others = "" if not open_ones else " (the folder can be listed; what is secret in it cannot be read)"
        return ok(f"Secrets are readable for you only{others}")
    names = ", ".join(map(str, open_ones))
    cure = f"Run: chmod 700 {shlex.join(map(str, open_ones))}"
    return warning(f"Other people on this machine can look into {names}.", cure)


async def disk_space(patient: CheckContext) -> HealthResult:
    """disk.space: there is room to write for the home, for memory and for the embedded server."""
    home = patient.home
    rooms = {
        folder: shutil.disk_usage(folder).free
        for folder in map(nearest_existing, (home.path, home.memory, home.bus))
    }
    folder = min(rooms, key=lambda one: rooms[one])
    free = rooms[folder]
    summary = f"{free // MIB} MiB are free on the disk of {folder}"
    if free < CRITICAL_SPACE:
        return failure(f"Only {summary}.", "Free some space; nothing can be stored soon.")
    return warning(f"Only {summary}.", "Free some space.") if free < LOW_SPACE else ok(summary)


def nearest_existing(folder: Path) -> Path:
    """The folder, or the nearest thing above it that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())


async def panic_released(patient: CheckContext) -> HealthResult | None:
    """panic.released: nothing is stopped by ``trunkline panic``."""
    pulled = KillSwitch(patient.home.path).read()
    if pulled is None:
        return ok("Nothing is stopped by panic")
    since = f" since {pulled.at}" if pulled.at else ""
    return failure(
        f"Everything is stopped by panic{since}: no tool runs and no model is asked.",
        f'Let it go on: "{RELEASE_COMMAND}".',
    )
