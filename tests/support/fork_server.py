"""Forks the programs of tests from one process that has imported Trunkline already.

``python -m trunkline.cli.main ARGUMENTS`` computes for half a second until it has imported what its command needs, and
the tests start thousands of programs. The server imports all of it once for each process of pytest, and forks for each
program. The new process gets the arguments, the environment, the working directory, the standard files and the signals
that ``subprocess.Popen`` would give it, and runs the module as ``python -m`` does. It is a child of pytest's process
with a separate id. Tests wait for it, signal it and kill it as usual.

A test calls ``Popen`` as always. Any call that is not exactly one of our programs with ordinary options starts a new
interpreter: ``python -c``, the script ``trunkline``, a program with its own descriptors or limits, one whose
environment Python reads when it starts. The tests of installing, of the README, of completion and of Ctrl-C start
programs in this way, as people do. ``/proc/PID/cmdline`` and ``/proc/PID/environ`` of a forked program are those of
the server.

``pytest --no-fork-server`` starts a new interpreter for every program.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import io
import os
import pickle
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TextIO

import pytest

MODULES = frozenset({"trunkline.cli.main", "trunkline.testing.scripted_provider"})
"""The programs that are forked."""

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OTEL_")
"""How the names of variables begin that are read before a program's own code runs. The server has read them."""

UNBUFFERED = "PYTHONUNBUFFERED"

MODULE_PATH = "PYTHONPATH"
"""The folders of a program's own modules. A fork searches them as Python does. If they have a module that the server
has imported already, or that Python imports at its start, the program is started anew."""

AT_ANY_START = ("sitecustomize", "usercustomize")
"""Modules that Python imports at its start."""

LARGEST = 100_000
"""Bytes of a request. What is larger is started anew."""

STANDARD = 3
"""Standard input, output and error."""

PROGRAMS = frozenset({"__main__", "main", "child"})
"""The names of modules that are programs, or run in one: the server does not import them."""

LIBRARIES = ("anyio._backends._asyncio", "click.shell_completion", "tomlkit", "uvicorn", "uvloop")
"""What programs import later, besides what their modules import."""

ROOT = Path(__file__).parents[2]

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a process, and its inherited environment, files and signals."""

    command: tuple[str, ...]
    environ: dict[bytes, bytes]
    cwd: bytes
    umask: int
    session: bool
    ignored: frozenset[int]
    blocked: frozenset[int]
    before: Callable[[], object] | None
    parent: int


class ForkServer:
    """The server's process, from the side of pytest. It starts with the first program."""

    def __init__(self) -> None:
        self._environ = dict(os.environb)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)

    def start(self, program: Program, files: tuple[int, int, int]) -> int:
        """Fork a process for the program and return its id; 0 if that is not possible."""
        try:
            message = pickle.dumps(program)
        except (AttributeError, TypeError, pickle.PicklingError):  # a function inside another
            return 0
        if len(message) > LARGEST:
            return 0
        with self._lock, self._adopting():
            line = self._socket = self._socket or self._begin()
            socket.send_fds(line, [message], files)
            pid = int(line.recv(32))
            line.recv(1)
            return pid  # 0: the server refused

    def begins_with(self, environ: Mapping[bytes, bytes]) -> bool:
        """Report whether Python would start in this environment as the server did, apart from the module path."""
        path = os.fsencode(MODULE_PATH)
        ours = self._environ.get(path)
        return _at_start(environ) == _at_start(self._environ) and ours in {None, environ.get(path)}

    def close(self) -> None:
        """End the server. The programs that it forked continue."""
        if self._socket is not None:
            self._socket.close()

    @contextlib.contextmanager
    def _adopting(self) -> Iterator[None]:
        """Have this process become the parent of the program when the one between them ends."""
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                env=self._environ, stdin=subprocess.DEVNULL, cwd=ROOT, pass_fds=(theirs.fileno(),),
            )  # fmt: skip
        return ours


# The side of pytest ------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--no-fork-server``."""
    parser.addoption("--no-fork-server", action="store_true", help="start every program of a test anew")


def pytest_configure(config: pytest.Config) -> None:
    """Have ``Popen`` ask the server, where there can be one."""
    if sys.platform == "linux" and not config.getoption("--no-fork-server"):
        config.pluginmanager.register(Forking())


class Forking:
    """Has ``subprocess.Popen`` fork the programs that the server knows."""

    def __init__(self) -> None:
        self._server = ForkServer()
        popen: Any = subprocess.Popen
        self._starts_anew = popen._execute_child
        self._signature = inspect.signature(self._starts_anew)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Fork while tests run."""
        with self.installed():
            return (yield)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Fork within the context; the server ends with it."""
        forking = self

        @functools.wraps(self._starts_anew)
        def start(process: subprocess.Popen[Any], *given: Any, **named: Any) -> None:
            if not forking._forks(process, forking._signature.bind(process, *given, **named).arguments):
                forking._starts_anew(process, *given, **named)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(subprocess.Popen, "_execute_child", start)
            try:
                yield
            finally:
                self._server.close()

    def _forks(self, process: Any, given: dict[str, Any]) -> bool:
        program = _program(given)
        if program is None or not self._server.begins_with(program.environ):
            return False
        sys.audit("subprocess.Popen", given["args"][0], given["args"], given["cwd"], given["env"])
        ends = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        files = [number if end == -1 else end for number, end in enumerate(ends)]
        pid = self._server.start(program, (files[0], files[1], files[2]))
        if pid:
            process.pid = pid
            process._child_created = True
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            process._close_pipe_fds(*(given[name] for name in pipes))
        return bool(pid)


def _program(given: Mapping[str, Any]) -> Program | None:
    """Return the program that these arguments of Popen start, if it is one of ours with ordinary options."""
    args, environ = given["args"], os.environ if given["env"] is None else given["env"]
    cwd = Path.cwd() if given["cwd"] is None else given["cwd"]
    unusual = (
        given["executable"], given["pass_fds"], given["shell"], given["gid"], given["gids"], given["uid"],
        given["umask"] >= 0, given["process_group"] >= 0,
    )  # fmt: skip
    ordinary = (
        not any(unusual)
        and given["close_fds"]
        and given["restore_signals"]
        and Path(os.fsdecode(cwd)).is_dir()
    )
    if not (ordinary and _is_ours(args)):
        return None
    return Program(
        command=tuple(args),
        environ={os.fsencode(name): os.fsencode(value) for name, value in environ.items()},
        cwd=os.fsencode(cwd),
        umask=_umask(),
        session=given["start_new_session"],
        ignored=frozenset(number for number in signal.valid_signals() if _is_ignored(number)),
        blocked=frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        before=given["preexec_fn"],
        parent=os.getpid(),
    )


def _is_ours(args: object) -> bool:
    return (
        isinstance(args, list | tuple)
        and len(args) > 2
        and all(isinstance(word, str) and "\0" not in word for word in args)
        and args[:2] == type(args)((sys.executable, "-m"))
        and args[2] in MODULES
    )


def _at_start(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    names = tuple(os.fsencode(name) for name in AT_START)
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(names) and os.fsdecode(name) not in {UNBUFFERED, MODULE_PATH}
    }


def _umask() -> int:
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


def _is_ignored(number: int) -> bool:
    # Python ignores these two itself, and Popen does not hand that on
    return number not in (signal.SIGPIPE, signal.SIGXFSZ) and signal.getsignal(number) is signal.SIG_IGN


# The side of the server --------------------------------------------------------------------------------------------


def serve(line: socket.socket) -> Program:
    """Fork for each request. Returns in the new process alone, with the program that it is to run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, whose end ends this process
    while True:
        message, files, _, _ = socket.recv_fds(line, LARGEST + 1, STANDARD)
        if not message:
            os._exit(0)
        program: Program = pickle.loads(message)
        if _replaces_modules(_own_folders(program)):
            line.send(b"0")
            _finish(line, files)
            continue
        # The child of a child: pytest becomes its parent when the process between them ends.
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid:
                line.send(str(pid).encode())
                os._exit(0)
            become(program, files)
            return program
        os.waitpid(between, 0)
        _finish(line, files)


def _finish(line: socket.socket, files: list[int]) -> None:
    line.send(b".")
    for file in files:
        os.close(file)


def _own_folders(program: Program) -> list[str]:
    """Return the program's folders of modules that this process does not search, as Python's start makes them."""
    path = os.fsencode(MODULE_PATH)
    own = program.environ.get(path, b"")
    if own == os.environb.get(path, b""):
        return []
    folders = os.fsdecode(own).split(os.pathsep)
    return list(dict.fromkeys(os.path.normpath(Path(os.fsdecode(program.cwd), folder)) for folder in folders))


def _replaces_modules(folders: list[str]) -> bool:
    """Report whether a folder has a module that is imported already, or that Python imports at its start."""
    for folder in filter(Path.is_dir, map(Path, folders)):
        if any(file.name.partition(".")[0] in {*sys.modules, *AT_ANY_START} for file in folder.iterdir()):
            return True
    return False


def become(program: Program, files: list[int]) -> None:
    """Make this process what ``Popen`` and the start of Python would have made it."""
    while os.getppid() != program.parent:
        time.sleep(0.0005)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(STANDARD, os.sysconf("SC_OPEN_MAX"))
    os.chdir(program.cwd)
    os.umask(program.umask)
    if program.session:
        os.setsid()
    own_folders = _own_folders(program)
    os.environb.clear()
    os.environb.update(program.environ)
    time.tzset()
    _inherit_signals(program)
    if program.before is not None:
        program.before()
    _open_standard_files(unbuffered=bool(program.environ.get(os.fsencode(UNBUFFERED))))
    sys.path[:1] = [str(Path.cwd()), *own_folders]
    sys.orig_argv = list(program.command)
    sys.argv[:] = program.command[2:]
    importlib.invalidate_caches()


def _inherit_signals(program: Program) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError):  # the C library keeps some for itself
            signal.signal(number, signal.SIG_IGN if number in program.ignored else signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if signal.SIGINT not in program.ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, program.blocked)


def _open_standard_files(*, unbuffered: bool) -> None:
    """Open them as Python does when it starts."""
    before = (sys.stdin, sys.stdout, sys.stderr)
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(io.FileIO(0, closefd=False)),
        before[0].encoding, before[0].errors, line_buffering=os.isatty(0),
    )  # fmt: skip
    sys.stdout, sys.stderr = (_writer(number, before[number], unbuffered=unbuffered) for number in (1, 2))
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))


def _writer(number: int, before: TextIO, *, unbuffered: bool) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    by_line = not unbuffered and (number == 2 or os.isatty(number))
    file: Any = raw if unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        file, before.encoding, before.errors, "\n", line_buffering=by_line, write_through=unbuffered
    )


def preload() -> None:
    """Import what programs import, as long as that starts no thread: a fork would not have it."""
    ours = {"trunkline", "trunkline_bus"}
    for one in distributions():
        ours |= {point.module.partition(".")[0] for point in one.entry_points if point.group == "trunkline"}
    for package in sorted(ours):
        _import_all_of(package)
    for library in LIBRARIES:
        importlib.import_module(library)
    assert len(list(Path("/proc/self/task").iterdir())) == 1


def _import_all_of(name: str) -> None:
    module = importlib.import_module(name)
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if inner.name not in PROGRAMS and inner.name != "testing":
            _import_all_of(f"{name}.{inner.name}")


def main() -> None:
    """Serve the socket whose descriptor is the argument; in a new process, run its program."""
    with socket.socket(fileno=int(sys.argv[1])) as line:
        preload()
        gc.collect()
        gc.freeze()  # a collection would write to what is shared, and so copy it
        program = serve(line)
        line.detach()
    try:
        runpy.run_module(program.command[2], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(status: int) -> None:
    """End the process as Python does, without freeing the modules one by one. If the outputs cannot be written,
    Python reports it itself."""
    threads: Any = threading
    threads._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
