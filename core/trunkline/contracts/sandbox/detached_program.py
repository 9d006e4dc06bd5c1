"""The record of a program that outlives the worker that began it: files in a folder, where any process finds it again.

::

    order.json  what was to be run     lock    held by the keeper as long as it lives
    output      what was printed       ended.json  how it ended
    cancel      that it is to end, and why

Whether it runs is told by the lock, which the kernel takes from a dead process: no number of a process can be taken for
another's, and after a restart of the machine nothing is held. Nothing is begun here; ``keeper.py`` does that.
"""

import fcntl
import os
import shutil
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from trunkline._util.private_folders import make_private
from trunkline.errors import ToolError

ProgramStatus = Literal["running", "ended", "lost"]

HALF_OUTPUT = 4 * 1024 * 1024
"""Bytes of a file of output; of a longer one the newest are kept, in twice as many at most."""


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run. ``backend`` is the sandbox that was chosen for it, ``seconds`` how long it may live, ``at``
    when it was ordered (UTC); the others are those of ``Sandbox.start``.
    """

    home: str
    backend: str
    argv: tuple[str, ...]
    workspace: str
    env: dict[str, str]
    folder: str
    label: str
    seconds: float
    memory: int
    cpus: float
    processes: int
    network: bool
    writable: bool
    at: datetime


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program, and its time (UTC). ``exit_code`` is None when it was killed, and ``killed`` says why;
    ``fault`` says what failed: alone, when it never began, and beside ``killed = "broken"`` when the sandbox
    failed around it.
    """

    at: datetime
    exit_code: int | None = None
    killed: str = ""
    fault: str = ""


class DetachedProgram:
    """A record, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The name of the program: that of its folder."""
        return self.folder.name

    def create(self, order: ProgramSpec) -> int:
        """Make the folder with the order in it; a handle that holds its lock, for the keeper to inherit.

        Raises:
            ToolError: there is such a record already, or the disk refuses it.
        """
        try:
            make_private(self.folder.parent)
            self.folder.mkdir(mode=0o700)
            _write(self.folder / "order.json", msgspec.json.encode(order))
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise ToolError(
                f"The program cannot be recorded, so it was not begun: {error.strerror}.",
                kind="unavailable",
            ) from error
        return handle

    def spec(self) -> ProgramSpec | None:
        """Return the spec of the program; None when that cannot be read."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "order.json").read_bytes(), type=ProgramSpec)
        return None

    def exit_record(self) -> ExitRecord | None:
        """Return the record of the program's end; None while it runs, and when it was lost."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "ended.json").read_bytes(), type=ExitRecord)
        return None

    def status(self) -> ProgramStatus:
        """Report whether it runs, has ended, or was lost with its keeper: to a crash or a restart of the machine."""
        held = self._is_held()
        if self.exit_record() is not None:
            return "ended"
        return "running" if held else "lost"

    def write_exit(self, ending: ExitRecord) -> None:
        """For the keeper: write down how it ended. Raises OSError."""
        _write(self.folder / "ended.json", msgspec.json.encode(ending))

    def request_cancel(self, why: str) -> None:
        """Have its keeper end it. Raises OSError."""
        _write(self.folder / "cancel", why.encode())

    def cancel_reason(self) -> str:
        """Why it is to end; "" when it is not."""
        with suppress(OSError):
            return (self.folder / "cancel").read_text(errors="replace") or "cancelled"
        return ""

    def tail(self, lines: int, most: int) -> str:
        """The last lines that it printed, and of these the last characters."""
        kept: deque[str] = deque(maxlen=lines)
        for name in ("output.1", "output"):
            with suppress(OSError), (self.folder / name).open(errors="replace") as file:
                kept.extend(line[-most:] for line in file)
        return "".join(kept)[-most:]

    def remove(self) -> None:
        """Away with it; one that runs would go on unseen, so end it first."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_held(self) -> bool:
        try:
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False


class OutputFile:
    """Where a keeper puts what is printed. A full disk loses some of it, and stops nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "output"
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Append it; once the file is long it becomes the older half."""
        with suppress(OSError):
            if self._size + len(piece) > HALF_OUTPUT:
                self._file.replace(self._file.with_name("output.1"))
                self._size = 0
            with self._file.open("ab") as file:
                file.write(piece)
            self._size += len(piece)


def programs_folder(home: Path, block: str) -> Path:
    """Where the records of a block's programs lie in a home: those in there end when their block is stopped."""
    return home / "tasks" / block


def list_programs(folder: Path) -> list[DetachedProgram]:
    """All records in a folder, the oldest first."""
    with suppress(OSError):
        orders = [(_made(entry), entry) for entry in folder.iterdir() if entry.is_dir()]
        return [DetachedProgram(entry) for _, entry in sorted(orders)]
    return []


def _made(folder: Path) -> int:
    with suppress(OSError):
        return (folder / "order.json").stat().st_mtime_ns
    return 0


def utc_now() -> datetime:
    """The time, as records have it."""
    return datetime.now(UTC)


def _write(file: Path, content: bytes) -> None:
    """Whole, or not at all."""
    made = file.with_name(f".{file.name}.{os.getpid()}")
    with made.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)
