"""Changes the release in use, restarts the service, and goes back when the release does not become ready."""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import trunkline
from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.cli._support.service_manager import ServiceManager, service_manager
from trunkline.config.home_format import FORMAT_VERSION, read_format
from trunkline.errors import TrunklineError
from trunkline.home.backup import restore_backup
from trunkline.home.paths import Home, storage_errors
from trunkline.home.releases import (
    Release,
    ReleaseInUse,
    read_release_in_use,
    releases_folder,
    remove_release_in_use,
    write_release_in_use,
)
from trunkline.home.run_file import read_run_file, running_pid

READY_SECONDS = 180.0
"""Seconds within which a restarted service must be ready with its release."""

GONE_SECONDS = 15.0
"""Seconds without a process of the service after which it is not awaited any longer."""

Say = Callable[[str], None]


class ReleaseSwitch:
    """Changes between the releases of one home. ``say`` prints a line for the owner."""

    def __init__(self, home: Home, say: Say) -> None:
        self._home = home
        self._say = say
        self._definition = ServiceDefinition.of(home)

    @property
    def present(self) -> Release:
        """The release of this process."""
        mark = read_format(self._home.path)
        return Release(
            trunkline.__version__, sys.executable, mark.format if mark is not None else FORMAT_VERSION
        )

    def change_to(self, version: str, python: str) -> None:
        """Let a release be in use, and let the service run it. A release that does not become ready is left again.

        Raises:
            TrunklineError: the release did not become ready. The former one is in use again, unless the new one has
                already changed the format of the home.
        """
        before = self.present
        known = read_release_in_use(self._home.path)
        first = known.launcher if known is not None else sys.executable
        self._write(ReleaseInUse(Release(version, python, before.format), before, first))
        try:
            self.finish(version)
        except TrunklineError as error:
            mark = read_format(self._home.path)
            if mark is not None and mark.format != before.format:
                raise TrunklineError(
                    f"{error.sentence} It has changed the format of the home, so Trunkline {before.version} does not "
                    "start without the data of before.",
                    hint="See: trunkline service logs. To go back: trunkline update --back",
                ) from error
            self._write(known)
            self._restart()
            raise TrunklineError(
                f"{error.sentence} Trunkline {before.version} is in use again.",
                hint="Nothing was lost. See: trunkline service logs",
            ) from error
        self._remove_others()

    def finish(self, version: str, *, has_stopped: bool = False) -> None:
        """Restart the service if it runs another release, or if this process ``has_stopped`` it. Raises TrunklineError
        when it does not become ready.
        """
        run = read_run_file(self._home)
        if run is not None and run.version == version:
            return
        manager = self._manager()
        if manager is not None and (has_stopped or manager.state(self._definition).is_running):
            self._say(f"Restarting the service {self._definition.name} ...")
            manager.restart(self._definition)
            self._wait_for(manager, version)
        elif running_pid(self._home) is not None:
            self._say(f"The running Trunkline goes on with its release. Start it again to use {version}.")

    def go_back(self, record: ReleaseInUse, backup: Path) -> None:
        """Let the former release be in use again. If the home has another format since, restore the backup of before:
        what came since is moved aside, and nothing is deleted.
        """
        back = record.before
        mark = read_format(self._home.path)
        manager = self._manager()
        must_restore = mark is not None and mark.format != back.format
        if must_restore:
            if manager is not None:
                self._say(f"Stopping the service {self._definition.name} ...")
                manager.stop(self._definition)
            done = restore_backup(self._home, backup, replace=True)
            self._say(f"Restored memory and settings of before. What came since is in {done.aside}.")
        self._write(ReleaseInUse(back, record.release, record.launcher))
        self.finish(back.version, has_stopped=must_restore)

    def _manager(self) -> ServiceManager | None:
        """Return the service manager if the service of this home is installed."""
        try:
            manager = service_manager()
        except TrunklineError:
            return None
        return manager if manager.file(self._definition).exists() else None

    def _restart(self) -> None:
        manager = self._manager()
        if manager is not None:
            manager.restart(self._definition)

    def _wait_for(self, manager: ServiceManager, version: str) -> None:
        now = seen = time.monotonic()
        end = now + READY_SECONDS
        while now < end and now < seen + GONE_SECONDS:
            run = read_run_file(self._home)
            if run is not None and run.version == version:
                return
            time.sleep(0.5)
            now = time.monotonic()
            seen = now if manager.state(self._definition).is_running else seen
        raise TrunklineError(
            f"Trunkline {version} did not become ready.",
            hint="See: trunkline service logs. To use the release of before: trunkline update --back",
        )

    def _write(self, record: ReleaseInUse | None) -> None:
        with storage_errors(self._home.path):
            if record is None:
                remove_release_in_use(self._home.path)
            else:
                write_release_in_use(self._home.path, record)

    def _remove_others(self) -> None:
        """Remove the releases that are neither in use nor the way back, and their backups."""
        record = read_release_in_use(self._home.path)
        if record is None:
            return
        kept = {record.release.version, record.before.version}
        used = (record.release.python, record.before.python, record.launcher, sys.executable)
        for folder in releases_folder(self._home.path).iterdir():
            if (
                folder.is_dir()
                and folder.name not in kept
                and not any(_is_below(one, folder) for one in used)
            ):
                shutil.rmtree(folder, ignore_errors=True)
        for file in releases_folder(self._home.path).glob("before-*.tar"):
            if file.name != backup_name(record.release.version):
                file.unlink(missing_ok=True)


def backup_name(version: str) -> str:
    """Return the name of the backup of before an update to a release."""
    return f"before-{version}.tar"


def _is_below(python: str, folder: Path) -> bool:
    return Path(python).is_relative_to(folder)
