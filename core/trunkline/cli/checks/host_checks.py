"""Checks of the machine and the home folder."""

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path

from trunkline.cli.checks.check import Patient, bad, fine, odd
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import StorageError
from trunkline.home.format_version import FORM, read_mark, refuse_newer
from trunkline.home.kill_switch import RELEASE, Latch

OLDEST_PYTHON = (3, 11)
MIB = 1024 * 1024
LITTLE, TOO_LITTLE = 1024 * MIB, 50 * MIB


def python_version() -> HealthResult:
    """python.version: at least 3.11."""
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info) >= OLDEST_PYTHON:
        return fine(f"Python {version}")
    return bad(f"Python {version} is too old.", "Install Python 3.11 or later.")


async def home_writable(patient: Patient) -> HealthResult:
    """home.writable: the home folder, or the nearest one above it, can be written."""
    for folder in (patient.home.path, patient.home.memory, patient.home.workspaces):
        there = nearest(folder)
        if not there.is_dir():
            return bad(f"{there} is a file, so {folder} cannot be made.", "Move it, or set TRUNKLINE_HOME.")
        if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
            return bad(f"{there} cannot be written.", "Make it writable for you, or set TRUNKLINE_HOME.")
    return fine(f"{patient.home.path} can be written")


async def home_form(patient: Patient) -> HealthResult:
    """home.form: this version knows the form in which the home is written."""
    try:
        refuse_newer(patient.home.path)
        mark = read_mark(patient.home.path)
    except StorageError as error:
        return bad(error.sentence, error.hint)
    if mark is None:
        return fine("The home is begun on the first start")
    if mark.form < FORM:
        return fine(f"The home is of form {mark.form}; the next start brings it to {FORM}")
    return fine(f"The home is of form {mark.form}")


async def home_permissions(patient: Patient) -> HealthResult | None:
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
        return fine(f"Secrets are readable for you only{others}")
    names = ", ".join(map(str, open_ones))
    cure = f"Run: chmod 700 {shlex.join(map(str, open_ones))}"
    return odd(f"Other people on this machine can look into {names}.", cure)


async def disk_space(patient: Patient) -> HealthResult:
    """disk.space: there is room to write for the home, for memory and for the embedded server."""
    home = patient.home
    rooms = {
        folder: shutil.disk_usage(folder).free for folder in map(nearest, (home.path, home.memory, home.bus))
    }
    folder = min(rooms, key=lambda one: rooms[one])
    free = rooms[folder]
    summary = f"{free // MIB} MiB are free on the disk of {folder}"
    if free < TOO_LITTLE:
        return bad(f"Only {summary}.", "Free some space; nothing can be stored soon.")
    return odd(f"Only {summary}.", "Free some space.") if free < LITTLE else fine(summary)


def nearest(folder: Path) -> Path:
    """The folder, or the nearest thing above it that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())


async def panic_released(patient: Patient) -> HealthResult | None:
    """panic.released: nothing is stopped by ``trunkline panic``."""
    pulled = Latch(patient.home.path).read()
    if pulled is None:
        return fine("Nothing is stopped by panic")
    since = f" since {pulled.at}" if pulled.at else ""
    return bad(
        f"Everything is stopped by panic{since}: no tool runs and no model is asked.",
        f'Let it go on: "{RELEASE}".',
    )
