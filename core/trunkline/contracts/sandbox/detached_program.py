"""The record of a program that outlives the worker which started it: files in a folder, where any process can find
it.

::

  order.json  the program to run         lock        held by the supervisor while it lives
  output      the program's output       ended.json  how the program ended
  cancel      the request to end, with the reason
  told        there when the end is known to the owner, or to the agent that ordered the program

The lock tells whether the program runs. The kernel releases the lock when the supervisor dies, so no reused process id
can be mistaken for the program, and after a restart of the machine no lock is held. This module starts no program;
``trunkline.workers.tools.program_supervisor`` does.
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
"""The largest number of bytes of one output file. Of longer output the newest bytes are kept, in two files."""


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run. ``backend`` is the name of the sandbox backend, ``seconds`` the longest run of the program,
    ``at`` the time of the order (UTC), ``tool`` the tool whose call ordered it. The other fields are the arguments of
    ``Sandbox.start``.
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
    tool: str = ""
    at: datetime


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program, and its time (UTC). ``exit_code`` is None if the program was killed; ``killed`` is then
    the reason. ``fault`` is the cause of a failure: without ``killed`` the program never started; with ``killed =
    "broken"`` the sandbox failed while the program ran.
    """

    at: datetime
    exit_code: int | None = None
    killed: str = ""
    fault: str = ""


class DetachedProgram:
    """The record of a program that outlives the worker which started it. The record is in the folder ``folder``.

    Guarantees: every process of this home may read the record at any time, also while the program runs. The order, the
    end and the request to cancel are complete when they appear.

    Not guaranteed: that the answers of two calls belong to the same moment, because the program may end between them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The name of the program, which is the name of its folder. Raises nothing."""
        return self.folder.name

    def create(self, order: ProgramSpec) -> int:
        """Create the folder with the order. Return a file descriptor that holds the lock, for the supervisor to
        inherit.

        Not guaranteed: that nothing remains after an error. The folder may hold a part of the record.

        Raises:
            ToolError: ``unavailable``: the record exists already, or the folder cannot be written.
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
        """Return the spec of the program; None if it cannot be read. Raises nothing."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "order.json").read_bytes(), type=ProgramSpec)
        return None

    def exit_record(self) -> ExitRecord | None:
        """Return the record of the program's end; None while the program runs, if it was lost, and if the record cannot
        be read. Raises nothing.
        """
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "ended.json").read_bytes(), type=ExitRecord)
        return None

    def status(self) -> ProgramStatus:
        """Return whether the program runs, has ended, or was lost because its supervisor died in a crash or a restart
        of the machine. Raises OSError if the file system cannot lock files.
        """
        held = self._is_held()
        if self.exit_record() is not None:
            return "ended"
        return "running" if held else "lost"

    def write_exit(self, ending: ExitRecord) -> None:
        """Store how the program ended. Called by the supervisor. Raises OSError if the record cannot be written."""
        _write(self.folder / "ended.json", msgspec.json.encode(ending))

    def request_cancel(self, why: str) -> None:
        """Ask the supervisor to end the program. The program may still run when this method returns; ``status`` tells.
        Raises OSError if the request cannot be written.
        """
        _write(self.folder / "cancel", why.encode())

    def cancel_reason(self) -> str:
        """Return the reason of the request to end the program; "" if there is no request. Raises nothing."""
        with suppress(OSError):
            return (self.folder / "cancel").read_text(errors="replace") or "cancelled"
        return ""

    def note_told(self) -> None:
        """Note that the owner or the agent knows how the program ended. Raises OSError if it cannot be written."""
        (self.folder / "told").touch(mode=0o600)

    @property
    def is_told(self) -> bool:
        """Report whether the owner or the agent knows how the program ended. Raises nothing."""
        return (self.folder / "told").exists()

    def tail(self, lines: int, most: int) -> str:
        """Return the last ``lines`` lines of the output, and of these at most the last ``most`` characters; "" if there
        is no output. Raises nothing.
        """
        kept: deque[str] = deque(maxlen=lines)
        for name in ("output.1", "output"):
            with suppress(OSError), (self.folder / name).open(errors="replace") as file:
                kept.extend(line[-most:] for line in file)
        return "".join(kept)[-most:]

    def remove(self) -> None:
        """Delete the record. End a running program first: without its record the program continues to run and can no
        longer be found. A file that cannot be deleted stays. Raises nothing.
        """
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
    """The file into which a supervisor writes the program's output. If the disk is full, output is lost, and the
    program continues.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "output"
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Append output. If the file is too long, rename it to ``output.1`` and start a new file."""
        with suppress(OSError):
            if self._size + len(piece) > HALF_OUTPUT:
                self._file.replace(self._file.with_name("output.1"))
                self._size = 0
            with self._file.open("ab") as file:
                file.write(piece)
            self._size += len(piece)


def programs_folder(home: Path, block: str) -> Path:
    """Return the folder of the records of a block's programs in a home. Programs recorded there end when their block
    is stopped.
    """
    return home / "tasks" / block


def list_programs(folder: Path) -> list[DetachedProgram]:
    """Return all records in a folder, oldest first."""
    with suppress(OSError):
        orders = [(_made(entry), entry) for entry in folder.iterdir() if entry.is_dir()]
        return [DetachedProgram(entry) for _, entry in sorted(orders)]
    return []


def _made(folder: Path) -> int:
    with suppress(OSError):
        return (folder / "order.json").stat().st_mtime_ns
    return 0


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def _write(file: Path, content: bytes) -> None:
    """Write the file atomically."""
    made = file.with_name(f".{file.name}.{os.getpid()}")
    with made.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)
