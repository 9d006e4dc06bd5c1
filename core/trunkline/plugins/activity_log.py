"""The activity log of a worker: the plugins whose code runs now, readable after a crash.

Each worker has one small file, mapped into memory. A few bytes are written before a plugin's code runs, and cleared
after it. That needs no system call, and the bytes survive a segmentation fault, ``os._exit`` and a kill.
``quarantine.py`` reads them.
"""

import contextlib
import fcntl
import mmap
import os
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from trunkline_bus import new_id

ActivityKind = Literal["import", "hook", "tool", "guard", "model", "context", "channel", "lifespan"]
ACTIVITY_KINDS: tuple[ActivityKind, ...] = (
    "import",
    "hook",
    "tool",
    "guard",
    "model",
    "context",
    "channel",
    "lifespan",
)

LONG_LIVED_KINDS: frozenset[ActivityKind] = frozenset({"channel", "lifespan"})
"""Activities that last as long as a worker. Their plugin is a suspect only if no other plugin is."""

HEADER_SIZE, SLOTS = 65_536, 1_024
_SLOT = struct.Struct("<HHI")
_SIZE = HEADER_SIZE + SLOTS * _SLOT.size
_EMPTY = bytes(_SLOT.size)


class ActivityLogHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The process that wrote the log. ``boot`` is the id of the system's boot, ``memory_kills`` the number of processes
    that the OOM killer had ended when the process started. ``leaving`` means that the process was asked to end, so
    its end is no crash."""

    worker: str
    pid: int
    boot: str
    memory_kills: int
    leaving: bool = False
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """A plugin whose code runs. ``at`` is a counter: the highest began last."""

    owner: str
    doing: ActivityKind
    at: int


class ActivityLog:
    """The activity log of one worker. Without a ``run`` folder in the home it is kept in memory only."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._head = ActivityLogHeader(
            worker=worker, pid=os.getpid(), boot=boot_id(), memory_kills=oom_kills()
        )
        self._indexes: dict[str, int] = {}
        self._free = list(range(SLOTS))
        self._count = 0
        file = _made(folder, worker)
        self._map = mmap.mmap(-1 if file is None else file.fileno(), _SIZE)
        self._write_head()
        self.close = weakref.finalize(self, _removed, file, os.getpid())
        """Remove the file, after a worker has ended normally."""

    def recording(self, owner: str, doing: ActivityKind) -> "_Recording":
        """Return a context in which the plugin counts as active."""
        index = self._indexes.get(owner)
        return _Recording(self, self._known(owner) if index is None else index, ACTIVITY_KINDS.index(doing))

    def mark_leaving(self) -> None:
        """Record that the process was asked to end, so that its end is no crash."""
        self._head = msgspec.structs.replace(self._head, leaving=True)
        self._write_head()

    def add(self, index: int, doing: int) -> int:
        """Record an activity. Return its slot, or -1 when all slots are used."""
        if not self._free:
            return -1
        slot = self._free.pop()
        self._count = (self._count + 1) & 0xFFFFFFFF
        _SLOT.pack_into(self._map, HEADER_SIZE + slot * _SLOT.size, index + 1, doing, self._count)
        return slot

    def remove(self, slot: int) -> None:
        """Clear a slot."""
        if slot >= 0:
            at = HEADER_SIZE + slot * _SLOT.size
            self._map[at : at + _SLOT.size] = _EMPTY
            self._free.append(slot)

    def _known(self, owner: str) -> int:
        index = self._indexes[owner] = len(self._indexes)
        self._head = msgspec.structs.replace(self._head, owners=(*self._head.owners, owner))
        self._write_head()
        return index

    def _write_head(self) -> None:
        text = msgspec.json.encode(self._head)
        if len(text) < HEADER_SIZE:
            self._map[: len(text) + 1] = text + b"\0"


class _Recording:
    __slots__ = ("_activity_log", "_doing", "_index", "_slot")

    def __init__(self, activity_log: ActivityLog, index: int, doing: int) -> None:
        self._activity_log, self._index, self._doing = activity_log, index, doing

    def __enter__(self) -> None:
        self._slot = self._activity_log.add(self._index, self._doing)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._activity_log.remove(self._slot)


def activity_log_folder(home: Path) -> Path:
    """Return the folder of the activity logs of a home."""
    return home / "run" / "activity"


def read_crashed(folder: Path) -> Iterator[tuple[ActivityLogHeader, tuple[Activity, ...]]]:
    """Yield the activity logs of processes that crashed. Each is yielded once: its file is removed."""
    for path in sorted(folder.glob("*.activity")):
        with contextlib.suppress(OSError, msgspec.DecodeError, struct.error), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            path.unlink()
            yield _read(file.read())


def _read(data: bytes) -> tuple[ActivityLogHeader, tuple[Activity, ...]]:
    head = msgspec.json.decode(data[:HEADER_SIZE].partition(b"\0")[0], type=ActivityLogHeader)
    slots = _SLOT.iter_unpack(data[HEADER_SIZE:_SIZE])
    activities = [
        Activity(head.owners[index - 1], ACTIVITY_KINDS[doing], at)
        for index, doing, at in slots
        if 0 < index <= len(head.owners) and doing < len(ACTIVITY_KINDS)
    ]
    return head, tuple(activities)


def boot_id() -> str:
    """Return an id of the system's present boot; "" where the system provides none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def oom_kills() -> int:
    """Return the number of processes that the kernel's OOM killer ended since boot; 0 where it is not counted."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _made(folder: Path, worker: str) -> "_File | None":
    """Return the file, locked for as long as the process lives; None where it cannot be created."""
    if not folder.parent.is_dir():
        return None
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{worker}-{new_id()}.activity"
        return _File(path)
    except OSError:
        return None


class _File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("x+b")
        path.chmod(0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.truncate(_SIZE)

    def fileno(self) -> int:
        return self._file.fileno()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._file.close()


def _removed(file: _File | None, pid: int) -> None:
    if file is not None and os.getpid() == pid:
        file.remove()
