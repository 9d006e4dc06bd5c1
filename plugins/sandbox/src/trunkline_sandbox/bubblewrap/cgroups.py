"""Control groups: one for each program, so that its limits hold for all that it begins together (cgroups(7)).

Where this machine lets us make none, a program is held by limits of each process alone; see ``limits.py``.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from trunkline import SandboxLimits

MIB = 1024 * 1024
NAME = "trunkline-"
NEEDED = frozenset({"memory", "pids"})
"""The controllers without which a group bounds too little."""

DELEGATED = ("user.delegate", "trusted.delegate")
"""The attribute that systemd sets on a group that it delegates to the unit's own processes (``Delegate=``)."""
PERIOD = 100_000
"""Microseconds over which a share of the processors counts; the kernel's own."""

OLD_SECONDS = 60.0

GONE_SECONDS = 1.0
"""Seconds that the kernel may take to report a group as empty after its processes have ended."""


@dataclass(frozen=True, slots=True)
class CgroupRoot:
    """The place where groups can be created: a folder for each controller; in version 2 all are the same."""

    version: int
    folders: tuple[tuple[str, Path], ...]


def find_root() -> CgroupRoot | None:
    """Return the place where groups that limit memory and processes can be created; None when there is none. Removes
    empty groups that a killed worker left."""
    for place in _candidate_roots():
        if all(_can_make_in(folder) for _, folder in place.folders):
            for _, folder in place.folders:
                _remove_stale(folder)
            return place
    return None


class ControlGroup:
    """The group of one program."""

    def __init__(self, place: CgroupRoot, limits: SandboxLimits) -> None:
        """Raises OSError when it cannot be made."""
        name = f"{NAME}{token_hex(8)}"
        self._folders = {controller: folder / name for controller, folder in place.folders}
        self._version = place.version
        try:
            for folder in set(self._folders.values()):
                folder.mkdir()
            for controller, file, value, needed in _limit_values(place.version, limits):
                self._write(controller, file, value, needed)
        except OSError:
            self.remove()
            raise

    def add(self, process: int) -> None:
        """Put a process in; what it begins from now on is in as well. Raises OSError."""
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(process))

    def out_of_memory(self) -> bool:
        """Report whether the kernel ended a process because the group had no memory left."""
        file = "memory.events" if self._version == 2 else "memory.oom_control"
        with suppress(OSError):
            lines = (self._folders["memory"] / file).read_text().splitlines()
            return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False

    def remove(self) -> None:
        """Take the group away, once its processes have ended."""
        until = time.monotonic() + GONE_SECONDS
        for folder in set(self._folders.values()):
            while not _remove_folder(folder) and time.monotonic() < until:
                time.sleep(0.002)

    def _write(self, controller: str, file: str, value: str, needed: bool) -> None:
        if controller not in self._folders:
            return
        try:
            (self._folders[controller] / file).write_text(value)
        except OSError:
            if needed:
                raise


def _limit_values(version: int, limits: SandboxLimits) -> Iterator[tuple[str, str, str, bool]]:
    """Controller, file, value, and whether the group is none without it."""
    memory, share = str(limits.memory * MIB), str(int(limits.cpus * PERIOD))
    yield "pids", "pids.max", str(limits.processes + 1), True  # one is bubblewrap's own
    if version == 2:
        yield "memory", "memory.max", memory, True
        yield "memory", "memory.swap.max", "0", False
        yield "cpu", "cpu.max", f"{share} {PERIOD}", False
    else:
        yield "memory", "memory.limit_in_bytes", memory, True
        yield "memory", "memory.memsw.limit_in_bytes", memory, False
        yield "cpu", "cpu.cfs_quota_us", share, False


def _candidate_roots() -> Iterator[CgroupRoot]:
    mounts = _mounts()
    own = _own_groups()
    if "" in own and "" in mounts:
        for folder in _upwards(mounts[""], own[""]):
            offered = _enabled_controllers(folder)
            if offered >= NEEDED:
                names = (*sorted(NEEDED), *(("cpu",) if "cpu" in offered else ()))
                yield CgroupRoot(2, tuple((name, folder) for name in names))
    if own.keys() & mounts.keys() >= NEEDED:
        names = (*sorted(NEEDED), *(("cpu",) if "cpu" in own.keys() & mounts.keys() else ()))
        yield CgroupRoot(1, tuple((name, next(_upwards(mounts[name], own[name]))) for name in names))


def _enabled_controllers(folder: Path) -> set[str]:
    """The controllers that groups below a folder of version 2 have. In a group that was left to us they are switched
    on: systemd leaves that to whoever it delegates to. A group with processes of its own has none (cgroups(7)), so a
    unit needs ``DelegateSubgroup=`` for its own ones."""
    offered, held = _words(folder / "cgroup.subtree_control"), _words(folder / "cgroup.controllers")
    if offered >= NEEDED or not held >= NEEDED or _words(folder / "cgroup.procs") or not _is_ours(folder):
        return offered
    for name in sorted(held & (NEEDED | {"cpu"})):
        with suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(f"+{name}")
    return _words(folder / "cgroup.subtree_control")


def _is_ours(folder: Path) -> bool:
    """Report whether somebody left the group to this process. That it may write there is no proof for root, who may
    everywhere.
    """
    if os.geteuid() != 0:
        return os.access(folder / "cgroup.subtree_control", os.W_OK)
    for name in DELEGATED:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _own_groups() -> dict[str, str]:
    """The group that this process is in, by controller; version 2 has none ("")."""
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        parts = [line.split(":", 2) for line in lines]
        return {controller: path for _, names, path in parts for controller in names.split(",")}
    return {}


def _mounts() -> dict[str, Path]:
    """Return the mount point of each controller; version 2 under ""."""
    found: dict[str, Path] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, options, *_ = line.split()
            if kind == "cgroup2":
                found.setdefault("", Path(place))
            elif kind == "cgroup":
                found |= {name: Path(place) for name in options.split(",")}
    return found


def _upwards(mount: Path, own: str) -> Iterator[Path]:
    """The folder of the own group and those above it, as far as they are seen here."""
    folder = mount / own.lstrip("/")
    while folder != mount:
        if folder.is_dir():
            yield folder
        folder = folder.parent
    yield mount


def _words(file: Path) -> set[str]:
    with suppress(OSError):
        return set(file.read_text().split())
    return set()


def _can_make_in(folder: Path) -> bool:
    probe = folder / f"{NAME}probe-{token_hex(4)}"
    try:
        probe.mkdir()
        (folder / "cgroup.procs").open("a").close()
    except OSError:
        return False
    finally:
        _remove_folder(probe)
    return True


def _remove_stale(folder: Path) -> None:
    """Only old ones: a new one may be empty because its program is about to be put in."""
    for left in folder.glob(f"{NAME}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_ctime > OLD_SECONDS:
                _remove_folder(left)


def _remove_folder(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
