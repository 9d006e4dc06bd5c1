"""Tries a staged release on a copy of the home: its settings, its plugins, the migration, memory and the bus.

The copy has the settings and memory as of one moment, and the streams of the embedded server. Nothing of it acts: there
is no monitor, no tools worker, no channel and no gateway, and neither another server, nor another host, nor a model is
asked. The real home is only read.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trunkline._util.archives.reader import copy_with_digest, safe_name
from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.config import Config
from trunkline.config.editor import write_settings
from trunkline.config.home_format import write_format
from trunkline.config.origins import VARIABLE_PREFIX
from trunkline.errors import TrunklineError
from trunkline.home.backup import read_backup_manifest, write_backup
from trunkline.home.paths import Home, make_folder, storage_errors
from trunkline.home.releases import STAY, releases_folder

TRIAL_SECONDS = 600.0
"""Seconds that a trial may take. The memory of the copy is indexed again meanwhile."""

TRIES = 2
"""A copy of streams that change meanwhile is like that after a power cut. It is taken once more before a release is
refused."""

KEPT_FREE = 500_000_000
"""The bytes that an update leaves free besides its copies."""

COPY = "trial-"

ELSEWHERE = (
    "bus.url", "bus.user", "bus.password", "bus.credentials_file", "runtime.memory_root", "tools.workspaces",
    "memory.embedder", "remotes.listen",
)  # fmt: skip
"""The settings that lead out of the copy. The copy has their defaults."""


def require_space(home: Home) -> None:
    """Raise TrunklineError when the disk has no room for the copies."""
    size = sum(
        path.lstat().st_size
        for folder in (home.memory, home.bus)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    with storage_errors(home.path):
        home.path.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(home.path).free
    if free < 3 * size + KEPT_FREE:
        raise TrunklineError(
            f"An update copies the home first and needs {(3 * size + KEPT_FREE) // 1_000_000} MB; "
            f"{free // 1_000_000} MB are free.",
            hint="Free some space. Nothing was changed.",
        )


async def back_up(config: Config, target: Path) -> None:
    """Write a backup of memory and the settings. Raises StorageError and BusError."""
    from trunkline.contracts.memory.export_transfer import export_memory
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
        exported = Path(folder) / "memory.tar"
        async with connect_to_platform(config, load_worker, kinds=("memory",)) as bus:
            await export_memory(bus, exported)
        write_backup(Home.of(config), target, exported, token=False, bus=False)


def try_release(config: Config, python: str, backup: Path) -> None:
    """Run the trial of a release on a copy of the home. Raises TrunklineError with what the release says."""
    home = Home.of(config)
    _require_settings(config, python)
    for attempt in range(1, TRIES + 1):
        with tempfile.TemporaryDirectory(prefix=COPY, dir=releases_folder(home.path)) as folder:
            copy = Home.at(Path(folder) / "home")
            _make_copy(config, home, copy, backup)
            environ = {**_own_variables(_service_environ(home)), "TRUNKLINE_HOME": str(copy.path)}
            done = _run(python, environ, "update", "--trial")
        if done.returncode == 0:
            return
        if attempt == TRIES or config.settings.bus.url is not None:
            raise _refusal("does not start on a copy of your home", done)


def remove_copies(home: Path) -> None:
    """Remove the copies of trials that were killed."""
    for folder in releases_folder(home).glob(f"{COPY}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _require_settings(config: Config, python: str) -> None:
    """Check the real settings with the release, variables included. It only reads them."""
    done = _run(
        python, {**_service_environ(Home.of(config)), "TRUNKLINE_HOME": str(config.home)}, "config", "--json"
    )
    if done.returncode:
        raise _refusal("does not accept your settings", done)


def _make_copy(config: Config, home: Home, copy: Home, backup: Path) -> None:
    """Unpack a backup that this process has just made, and copy the streams."""
    with storage_errors(copy.path):
        copy.path.mkdir(parents=True, mode=0o700)
        with tarfile.open(backup) as tar:
            for member in tar:
                data, target = tar.extractfile(member), copy.path / safe_name(member)
                make_folder(target if member.isdir() else target.parent)
                if data is not None:
                    copy_with_digest(data, target, 0o700 if member.mode & 0o100 else 0o600)
        write_format(copy.path, read_backup_manifest(backup).format)
    write_settings(copy.config_file, dict.fromkeys(ELSEWHERE))
    if config.settings.bus.url is None and home.bus.is_dir():
        with storage_errors(copy.bus):
            shutil.copytree(home.bus, copy.bus, copy_function=_copy_file, dirs_exist_ok=True)


def _copy_file(source: str, target: str) -> None:
    with suppress(FileNotFoundError):  # the server has removed it meanwhile
        shutil.copy2(source, target)


def _service_environ(home: Home) -> dict[str, str]:
    """Return the variables of this process, and those that the service of the home has besides, such as API keys."""
    return {**os.environ, **ServiceDefinition.of(home).read_variables()}


def _own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that lead out of the copy."""
    out = {VARIABLE_PREFIX + key.upper().replace(".", "__") for key in ELSEWHERE}
    return {name: value for name, value in environ.items() if name not in out}


def _run(python: str, environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [python, "-m", "trunkline.cli.main", *arguments], env={**environ, STAY: "1"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TrunklineError(
            f"The trial of the new release did not end within {TRIAL_SECONDS:.0f} s.",
            hint="Nothing was changed. Report it with the output of: trunkline doctor",
        ) from None


def _refusal(what: str, done: subprocess.CompletedProcess[str]) -> TrunklineError:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    said = "\n".join(lines[-8:])[-2000:] or f"exit status {done.returncode}"
    return TrunklineError(
        f"The new release {what}. It says:\n{said}",
        hint="Nothing was changed: the release in use goes on. Correct it, and repeat: trunkline update",
    )
