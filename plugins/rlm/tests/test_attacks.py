"""Code that wants out. The check refuses most of it; all of it is also run without the check, and has no effect.

What holds is proved from outside: a file to read, a file to write, a server to reach, processes to begin and to hurt.
"""

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import seccomp
from trunkline_rlm.repl import frames, process
from trunkline_rlm.repl.filter import program
from trunkline_rlm.repl.frames import Call, Done, Hostile
from trunkline_rlm.repl.process import CannotConfine, Limits, begun
from trunkline_rlm.repl.session import Broken, Fault, SandboxViolation, Session

pytestmark = pytest.mark.anyio

SECRET = "swordfish-7391"

WAY_OUT = """
def find(name):
    for kind in ().__class__.__base__.__subclasses__():
        try:
            space = kind.__init__.__globals__
        except AttributeError:
            continue
        if name in space:
            return space[name]
        if 'sys' in space and name in space['sys'].modules:
            return space['sys'].modules[name]
os = find('os')
"""
"""From a tuple to the module ``os``: works in every Python, so nothing may hang on it."""

FORBIDDEN = {
    "import": '__import__("os").system("touch {mark}")',
    "import os": "import os\nos.system('touch {mark}')",
    "from os": "from os import system\nsystem('touch {mark}')",
    "open": "open('{mark}', 'w')",
    "open to read": "open('{secret}').read()",
    "exec": "exec('x = 1')",
    "eval": "eval('1')",
    "compile": "compile('1', 'x', 'eval')",
    "subprocess": "import subprocess; subprocess.run(['touch', '{mark}'])",
    "sys.modules": "sys.modules['os'] = None",
    "getattr of builtins": "getattr(__builtins__, 'open')('{mark}', 'w')",
    "builtins by key": "__builtins__['open']('{mark}', 'w')",
    "globals": "globals()['__builtins__']['open']('{mark}', 'w')",
    "locals": "locals()['__builtins__']['open']('{mark}', 'w')",
    "bases": "().__class__.__bases__[0].__subclasses__()",
    "del of a builtin": "del __builtins__.open",
    "setattr of builtins": "setattr(__builtins__, 'open', 1)",
    "name put together": "getattr((), '__cl' + 'ass__')",
    "generator frame": "g = (x for x in [1])\ng.gi_frame.f_back.f_globals",
    "traceback frame": "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_back.f_globals",
    "traceback of an error": "try:\n    1/0\nexcept Exception as e:\n    e.with_traceback.__self__.__traceback__",
    "coroutine frame": "async def f(): pass\nf().cr_frame",
    "module of a class": "re.Pattern.__module__",
    "decorator": "@eval\nclass A: pass",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', {port}))",
    "urllib": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}')",
    "ctypes": "import ctypes",
}  # fmt: skip
"""RLM-T8, and some more: refused by the check."""

HARMLESS = {
    "format": "'{{0.__class__.__base__}}'.format(())",
    "format to globals": "'{{0.__init__.__globals__}}'.format(read)",
    "module in a module": "random._os.system('touch {mark}')",
    "module in a module, to read": "random._os.open('{secret}', 0)",
    "modules by a module": "json.codecs.builtins.open('{mark}', 'w')",
    "import by a module": "statistics.sys.modules['os'].fork()",
}
"""What the check lets pass."""

ESCAPED = {
    "read": "os.open('{secret}', 0)",
    "write": "os.open('{mark}', os.O_CREAT | os.O_WRONLY)",
    "system": "os.system('touch {mark}') and 1/0",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/sh', ['sh', '-c', 'touch {mark}'])",
    "spawn": "os.posix_spawn('/bin/sh', ['sh', '-c', 'touch {mark}'], {{}})",
    "list": "os.listdir('/')",
    "proc": "os.readlink('/proc/self/exe')",
    "other process": "os.kill({pid}, 9)",
    "own group": "os.killpg(0, 9)",
    "priority": "os.nice(-5)",
    "descriptor": "os.open('.', os.O_PATH)",
    "duplicate": "os.dup(0)",
    "pipe": "os.pipe()",
    "shared memory": "os.memfd_create('x')",
    "limits": "find('ctypes').CDLL(None).setrlimit(9, bytes([255] * 16)) and 1/0",
    "socket": "find('ctypes').CDLL(None).socket(2, 1, 0) == -1 and 1/0",
    "socket pair": "find('ctypes').CDLL(None).socketpair(1, 1, 0, bytes(8)) == -1 and 1/0",
    "trace": "find('ctypes').CDLL(None).ptrace(16, {pid}, 0, 0) and 1/0",
    "foreign memory": "find('ctypes').CDLL(None).process_vm_readv({pid}, 0, 0, 0, 0, 0) and 1/0",
    "namespaces": "find('ctypes').CDLL(None).unshare(0x10000000) and 1/0",
    "x32 call": "find('ctypes').CDLL(None).syscall(0x40000000 + 2, b'{secret}', 0) < 0 and 1/0",
    "io_uring": "find('ctypes').CDLL(None).syscall(425, 8, 0) < 0 and 1/0",
    "executable memory": "find('ctypes').CDLL(None).mmap(0, 4096, 7, 0x22, -1, 0) == -1 and 1/0",
}
"""With ``os`` and ``ctypes`` in hand: the kernel denies each (what fails by its return value divides by zero)."""


@dataclass(slots=True)
class Outside:
    """What an attack would touch."""

    mark: Path
    secret: Path
    listener: socket.socket
    victim: subprocess.Popen[bytes]

    def fill(self, code: str) -> str:
        port = self.listener.getsockname()[1]
        return code.format(mark=self.mark, secret=self.secret, port=port, pid=self.victim.pid)

    def check(self, told: str) -> None:
        """Nothing has happened."""
        assert not self.mark.exists() and SECRET not in told
        assert self.victim.poll() is None
        with pytest.raises(BlockingIOError):
            self.listener.accept()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    folder.chmod(0o777)
    (folder / "secret").write_text(SECRET)
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        yield Outside(folder / "mark", folder / "secret", listener, victim)
    victim.kill()
    victim.wait()


async def _read() -> str:
    return "read"


def open_session() -> Session:
    """A session without the check, as for code that has found a way past it."""
    return Session({"read": _read}, Limits(timeout=5.0), checked=False)


async def came_of(session: Session, code: str) -> str:
    """All that came of code."""
    try:
        ran = await session.run(code)
    except (Broken, SandboxViolation) as broken:
        return f"{type(broken).__name__}: {broken}"
    return f"{ran.value!r} {ran.shown} {ran.error} {ran.output}"


async def test_rlm_t8_refused_and_without_effect(outside: Outside) -> None:
    """RLM-T8: the check refuses it, and run all the same it reaches nothing."""
    async with Session() as checked, open_session() as unchecked:
        for name, code in FORBIDDEN.items():
            told = await came_of(checked, outside.fill(code))
            assert (name, "SandboxViolation" in told or "Attribute error" in told) == (name, True)
            outside.check(await came_of(unchecked, outside.fill(code)))


async def test_rlm_t8_what_passes_the_check_reaches_nothing(outside: Outside) -> None:
    """RLM-T8: names put together in texts and modules within modules show names at most."""
    async with Session({"read": _read}) as session:
        for code in HARMLESS.values():
            outside.check(await came_of(session, outside.fill(code)))


@pytest.mark.parametrize("walls", ["filter and namespaces", "filter alone"])
async def test_a_code_that_has_broken_out_of_python_is_still_shut_in(
    outside: Outside, walls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the module ``os`` and any system call in its hands, each is denied by the kernel; also where the machine
    gives no namespaces."""
    if walls == "filter alone":
        patch = "from trunkline_rlm.repl.inside import lockdown\nlockdown._apart = lambda libc: False\n"
        monkeypatch.setattr(process, "PROGRAM", begun_with(tmp_path, patch))
    async with open_session() as session:
        for name, code in ESCAPED.items():
            told = await came_of(session, WAY_OUT + outside.fill(code))
            denied = any(word in told for word in ("PermissionError", "Zero division error", "Broken"))
            assert (name, denied, told) == (name, True, told)
            outside.check(told)


async def test_others_go_first() -> None:
    """Code yields the processor to the workers, and is what the kernel ends first when memory runs out."""
    confined = await begun((), Limits())
    try:
        there = Path(f"/proc/{confined.pid}")
        assert os.getpriority(os.PRIO_PROCESS, confined.pid) >= 10
        assert int((there / "oom_score_adj").read_text()) == 1000
    finally:
        await confined.end()


async def test_namespaces_are_a_second_wall() -> None:
    """Where the machine gives them, the process has a network and a root folder of its own, both empty."""
    confined = await begun((), Limits())
    try:
        if not confined.apart:
            pytest.skip("ordinary users may make no namespaces on this machine")
        there, here = Path(f"/proc/{confined.pid}"), Path("/proc/self")
        for kind in ("user", "net", "mnt", "ipc", "uts"):
            assert (there / "ns" / kind).readlink() != (here / "ns" / kind).readlink()
        assert "(deleted)" in str((there / "root").readlink())
        assert (there / "net/dev").read_text().count(":") == 1  # lo, and that is down
    except PermissionError:
        pytest.skip("this user may not look at another process's namespaces")
    finally:
        await confined.end()


async def test_the_environment_is_empty() -> None:
    """Nothing that the host was given, keys above all, is in the process."""
    os.environ["TRUNKLINE_TEST_KEY"] = SECRET
    try:
        async with open_session() as session:
            told = await came_of(session, f"{WAY_OUT}dict(os.environ)")
    finally:
        del os.environ["TRUNKLINE_TEST_KEY"]
    assert SECRET not in told and "PATH" not in told


HOSTILE: dict[str, bytes | str] = {
    "too long": struct.pack(">I", 1 << 31),
    "empty": struct.pack(">I", 0),
    "no json": struct.pack(">I", 4) + b"\xff\xfe\x00{",
    "another shape": struct.pack(">I", 13) + b'["done",1,2,3',
    "unknown kind": struct.pack(">I", 8) + b'["evil"]',
    "out of turn": struct.pack(">I", 14) + b'["ready",true]',
    "unknown function": struct.pack(">I", 18) + b'["call","x",[],{}]',
    "deep": """b'["call","read",[' + b'[' * 50_000 + b']' * 50_000 + b'],{}]'""",
    "much in little": """b'["done",[' + b'[],' * 1_500_000 + b'[]],"",null,false,[]]'""",
    "many names": """b'["done",1,"",null,false,[' + b'"ab",' * 100_000 + b'"c"]]'""",
    "more output": """b'["out","' + b'x' * 3_000_000 + b'"]'""",
}
"""Bytes for the pipe; or how code makes the body of a large frame."""


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_frame_ends_the_session(name: str) -> None:
    """Who has taken the process over can write anything to the pipe: the host reads what it knows, or ends it."""
    async with Session(limits=Limits(timeout=10.0, output=2_000_000), checked=False) as session:
        data = HOSTILE[name]
        made = repr(data) if isinstance(data, bytes) else f"len(body := {data}).to_bytes(4, 'big') + body"
        code = f"{WAY_OUT}view = {made}\nwhile view:\n    view = view[os.write(1, view):]\nwhile True: pass"
        with anyio.fail_after(30), pytest.raises(Broken):
            await session.run(code)
        assert session.pid is None


async def test_a_process_that_does_not_listen_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was taken over says that it is done, and never reads again: the next run does not wait for it."""
    monkeypatch.setattr(process, "SEND_SECONDS", 0.3)
    body = b'["done",1,"",null,false,[]]'
    code = f"{WAY_OUT}os.write(1, len(b := {body!r}).to_bytes(4, 'big') + b)\nwhile True: pass"
    async with open_session() as session:
        assert (await session.run(code)).value == 1
        with anyio.fail_after(30), pytest.raises(Broken):
            await session.run("x" * 1_000_000)
        assert session.pid is None


def test_frames_are_read_in_their_shapes_alone() -> None:
    """Values may be anything of JSON; everything else has a type and a bound."""
    assert isinstance(frames.decoded(b'["done",{"a":[1]},"",null,false,[]]'), Done)
    assert isinstance(frames.decoded(b'["call","f",[1],{"a":2}]'), Call)
    for body in (
        b'["done",1]',
        b'["call",1,[],{}]',
        b'["out",1]',
        b"{}",
        b'["ready",1]',
        b"[]",
        b'["out","a","b"]',
    ):
        with pytest.raises(Hostile):
            frames.decoded(body)
    for size in (0, frames.LARGEST + 1, 0xFFFFFFFF):
        with pytest.raises(Hostile):
            frames.length(size.to_bytes(4, "big"))


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda some: b'["call","f",' + some + b"]"))
def test_no_bytes_bring_anything_but_a_frame_or_a_refusal(body: bytes) -> None:
    """Whatever comes out of the pipe is a frame with values in it, or is hostile."""
    try:
        frame = frames.decoded(body)
        if isinstance(frame, Call):
            frame.given()
        elif isinstance(frame, Done):
            _ = (frame.value, frame.variables)
    except Hostile:
        pass


@pytest.mark.kill
def test_killing_the_host_leaves_no_process() -> None:
    """SIGKILL to the worker: the kernel ends what it had begun, also in the middle of an endless loop."""
    script = (
        "import anyio\n"
        "from trunkline_rlm.repl.session import Session\n"
        "async def main():\n"
        "    async with Session() as session:\n"
        "        await session.run('1')\n"
        "        print(session.pid, flush=True)\n"
        "        await session.run('while True: pass')\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        host.kill()
    deadline = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def begun_with(folder: Path, patch: str) -> Path:
    """The program of a session on another machine: ``patch`` is what differs there."""
    path = folder / "main.py"
    source = Path(process.PROGRAM)
    inside = source.parents[3]
    path.write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(inside)!r})\n{patch}"
        f"runpy.run_path({str(source)!r}, run_name='__main__')\n"
    )
    return path


async def test_where_no_process_can_be_shut_in_no_code_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails closed, and says why: for another processor no process is begun."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    async with Session() as session:
        with pytest.raises(CannotConfine, match="no filter of system calls for Linux on riscv64"):
            await session.run("1")


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_is_a_program_that_ends(machine: str) -> None:
    """Every jump leads forward to an instruction, and what nothing allows is denied."""
    code = program(machine)
    assert code[-1][0] == 0x06 and code[-1][3] >> 16 == 0x0005
    for place, (kind, yes, no, _) in enumerate(code):
        if kind in (0x15, 0x25, 0x45):
            assert place + 1 + max(yes, no) < len(code)


async def test_a_fault_of_the_host_is_not_shown_to_code() -> None:
    """An exception that is no ``Fault`` ends the run at the host, and never tells the code of it."""

    async def broken() -> None:
        raise ValueError(SECRET)

    async with Session({"broken": broken}) as session:
        with pytest.raises(ValueError, match=SECRET):
            await session.run("try:\n    broken()\nexcept BaseException as e:\n    FINAL(str(e))")
        assert not session.is_complete
    assert Fault("ValueError", "x").kind == "ValueError"
