"""Code that tries to escape. The check refuses most of it; all of it also runs without the check, and has no effect.

The effects are checked from outside: a file to read, a file to write, a server to reach, processes to start and to
kill.
"""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import psutil
import pytest
from rlm_escapes import WAY_OUT, open_session, read
from rlm_processes import begun_by, none_left

from trunkline import Sandbox, ToolError
from trunkline._util import seccomp
from trunkline.contracts.sandbox.sandbox import NoSandbox
from trunkline_rlm.repl import process
from trunkline_rlm.repl import process as python
from trunkline_rlm.repl.process import ReplLimits
from trunkline_rlm.repl.seccomp_filter import filter_program
from trunkline_rlm.repl.session import (
    CodeTimeoutError,
    HostFunctionError,
    ProcessBrokenError,
    ReplSession,
    SandboxViolation,
)

pytestmark = pytest.mark.anyio

SECRET = "swordfish-7391"

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
    "f-string": "f'{{().__class__.__base__.__subclasses__()}}'",
    "f-string format": "f'{{1:{{().__class__}}}}'",
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


LOOSE = {
    "parent": "os.kill(os.getppid(), 9)",
    "first process": "os.kill(1, 9)",
    "everybody": "os.kill(-1, 9)",
    "handles": "[os.close(each) for each in range(256)]",
    "others' secrets": "[open_(f'/proc/{{each}}/environ').read() for each in os.listdir('/proc') if each.isdigit()]",
    "others' memory": "os.open('/proc/{pid}/mem', os.O_RDWR)",
    "home": "os.listdir(os.path.dirname('{secret}'))",
    "workspace": "os.open('/workspace/kept', os.O_CREAT | os.O_WRONLY)",
    "package": "os.open('/opt/trunkline_rlm/tool.py', os.O_WRONLY)",
    "stop": "os.kill(os.getpid(), 19)",
}
"""What it would try besides, with no filter in its way."""


@dataclass(slots=True)
class Outside:
    """The targets of an attack."""

    mark: Path
    secret: Path
    listener: socket.socket
    victim: subprocess.Popen[bytes]

    def fill(self, code: str) -> str:
        port = self.listener.getsockname()[1]
        return code.format(mark=self.mark, secret=self.secret, port=port, pid=self.victim.pid)

    def check(self, reported: str) -> None:
        """Check that no effect happened."""
        assert not self.mark.exists() and SECRET not in reported
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


@pytest.fixture
def loose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not shut itself in: nothing but the sandbox holds it."""
    package = shutil.copytree(process.PACKAGE, tmp_path / process.PACKAGE.name)
    with (package / "repl/child/lockdown.py").open("a") as file:
        file.write("\n\ndef lock(*limits):\n    pass\n")
    monkeypatch.setattr(process, "PACKAGE", package)


def interpreter() -> psutil.Process:
    """Return the Python process of the only session."""
    (found,) = (one for one in begun_by() if one.cmdline()[1:2] == ["-I"])
    return found


async def came_of(session: ReplSession, code: str) -> str:
    """All that came of code."""
    try:
        ran = await session.run(code)
    except (ProcessBrokenError, SandboxViolation, CodeTimeoutError) as broken:
        return f"{type(broken).__name__}: {broken}"
    return f"{ran.value!r} {ran.shown} {ran.error} {ran.output}"


async def test_rlm_t8_refused_and_without_effect(sandbox: Sandbox, outside: Outside) -> None:
    """RLM-T8: the check refuses the code, and without the check it reaches nothing."""
    async with ReplSession(sandbox) as checked, open_session(sandbox) as unchecked:
        for name, code in FORBIDDEN.items():
            reported = await came_of(checked, outside.fill(code))
            assert (name, "SandboxViolation" in reported or "Attribute error" in reported) == (name, True)
            outside.check(await came_of(unchecked, outside.fill(code)))


async def test_rlm_t8_code_that_passes_the_check_reaches_nothing(sandbox: Sandbox, outside: Outside) -> None:
    """RLM-T8: names put together in texts and modules within modules show names at most."""
    async with ReplSession(sandbox, {"read": read}) as session:
        for code in HARMLESS.values():
            outside.check(await came_of(session, outside.fill(code)))


async def test_code_that_escapes_python_is_still_confined(outside: Outside, sandbox: Sandbox) -> None:
    """With the module ``os`` and any system call in its hands, each is denied by the kernel."""
    async with open_session(sandbox) as session:
        for name, code in ESCAPED.items():
            reported = await came_of(session, WAY_OUT + outside.fill(code))
            denied = any(word in reported for word in ("PermissionError", "Zero division error", "Broken"))
            assert (name, denied, reported) == (name, True, reported)
            outside.check(reported)


@pytest.mark.usefixtures("loose")
async def test_the_sandbox_protects_without_the_code_check(outside: Outside, sandbox: Sandbox) -> None:
    """The process runs without its own confinement: system calls work then, and none of them reaches anything
    outside of the sandbox, no parent, no other process, no file, no network."""
    running = []
    async with open_session(sandbox, ReplLimits(timeout=1.0)) as session:
        for code in (*ESCAPED.values(), *LOOSE.values()):
            reported = await came_of(session, WAY_OUT + outside.fill(code))
            outside.check(reported)
            running += begun_by()
        assert (await came_of(session, "40 + 2")).startswith("42") or not session.has_process
    await none_left(running)


LASTING = {
    "a loop": ("while True: pass", CodeTimeoutError),
    "a daemon": (
        "for _ in range(2):\n    os.fork() or os.setsid()\n"
        "find('ctypes').CDLL(None).signal(15, 1)\nwhile True: pass",
        CodeTimeoutError,
    ),
    "a fork bomb": (
        "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        CodeTimeoutError,
    ),
    "a thread": (
        "def run():\n    while True: pass\nfind('_thread').start_new_thread(run, ())\nos.close(0)\nos.close(1)",
        ProcessBrokenError,
    ),
    "ten gigabytes": ("kept = [bytes([1]) * 2**27 for _ in range(80)]\nos._exit(0)", ProcessBrokenError),
}
"""What would outlive its session, or take all of the machine, with ``os`` in hand; and how its run ends."""


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize("name", LASTING)
async def test_rlm_t10_every_process_ends_with_its_session(sandbox: Sandbox, name: str) -> None:
    """RLM-T10: what nothing within the process would stop ends at the limits of the sandbox, with all that it began."""
    code, ended = LASTING[name]
    async with ReplSession(sandbox, limits=ReplLimits(timeout=2.0), checked=False) as session:
        await session.run("1")
        running = begun_by()
        with anyio.fail_after(30):
            try:
                ran = await session.run(f"{WAY_OUT}{code}")
                assert (name, (ran.error or "")[:12]) == ("ten gigabytes", "Memory error")
            except ended:
                assert not session.has_process
        running += begun_by()
    await none_left(running)


async def test_code_runs_at_low_priority(sandbox: Sandbox) -> None:
    """Code yields the processor to the workers, and is the first to be killed when memory runs out."""
    async with ReplSession(sandbox) as session:
        await session.run("1")
        python = interpreter()
        assert python.nice() >= 10
        assert Path(f"/proc/{python.pid}/oom_score_adj").read_text() == "1000\n"  # noqa: ASYNC240


async def test_code_runs_in_its_own_namespaces(sandbox: Sandbox) -> None:
    """Namespaces of users, processes, network, mounts, IPC and host name; an empty folder to be in; no file of ours but
    this package and Python."""
    async with ReplSession(sandbox) as session:
        await session.run("1")
        there, here = Path(f"/proc/{interpreter().pid}"), Path("/proc/self")
        try:
            for kind in ("user", "pid", "net", "mnt", "ipc", "uts"):
                assert (there / "ns" / kind).readlink() != (here / "ns" / kind).readlink()
            assert (there / "net/dev").read_text().count(":") == 1  # lo alone
            assert list((there / "root/workspace").iterdir()) == []
            assert not (there / "root/home").exists() and not (there / "root/root/.ssh").exists()
        except PermissionError:
            pytest.skip("this user may not look at another process's namespaces")


async def test_the_environment_is_empty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has no variable of the host, in particular no key."""
    monkeypatch.setenv("TRUNKLINE_TEST_KEY", SECRET)
    async with open_session(sandbox) as session:
        ran = await session.run(f"{WAY_OUT}[*os.environ, *os.environ.values()]")
    assert SECRET not in ran.value and {"PATH", "HOME"} <= set(ran.value) and len(ran.value) < 20


@pytest.mark.kill
async def test_killing_the_host_leaves_no_process(sandbox: Sandbox, tmp_path: Path) -> None:
    """After SIGKILL to the worker the kernel ends its child processes, also in the middle of an endless loop."""
    script = (
        "import anyio, pathlib, sys\n"
        "from trunkline_rlm.repl.session import ReplSession\n"
        "from trunkline_sandbox.bubblewrap.backend import Bubblewrap\n"
        "from trunkline_sandbox.settings import SandboxSettings\n"
        "async def main():\n"
        "    async with ReplSession(Bubblewrap(SandboxSettings(), pathlib.Path(sys.argv[1]))) as session:\n"
        "        await session.run('1')\n"
        "        print('begun', flush=True)\n"
        "        await session.run('while True: pass')\n"
        "anyio.run(main)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    async with await anyio.open_process(command, stderr=None) as host:
        assert host.stdout is not None and b"begun" in await host.stdout.receive()
        running = begun_by(host.pid)
        host.kill()
    assert running
    await none_left(running)


async def test_without_a_sandbox_no_code_is_run() -> None:
    """The tool is refused, and nothing is tried without it."""
    async with ReplSession(NoSandbox()) as session:
        with pytest.raises(ToolError, match="no sandbox"):
            await session.run("1")
        assert not session.has_process and begun_by() == []


async def test_the_sandbox_s_python_runs_where_ours_cannot(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as in an image made for another system; where there is neither, the refusal has the shell's own words."""
    monkeypatch.setattr(python, "own_interpreter", lambda: "/nowhere/python")
    async with ReplSession(sandbox) as session:
        try:
            assert (await session.run("6 * 7")).value == 42
        except ToolError as error:
            assert "python3" in str(error)  # this machine's system has none
    monkeypatch.setattr(python, "START_SCRIPT", python.START_SCRIPT.replace("python3", "no-python3"))
    async with ReplSession(sandbox) as session:
        with pytest.raises(ToolError, match="no-python3: not found"):
            await session.run("1")


async def test_without_confinement_no_code_runs(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session fails closed with a reason: on a machine for which no filter exists."""
    monkeypatch.setattr(process, "ARCHITECTURES", ())
    async with ReplSession(sandbox) as session:
        with pytest.raises(ToolError, match="there is no seccomp filter for"):
            await session.run("1")
        assert begun_by() == []


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_is_a_program_that_ends(machine: str) -> None:
    """Every jump leads forward to an instruction, and what nothing allows is denied."""
    code = filter_program(machine)
    assert code[-1][0] == 0x06 and code[-1][3] >> 16 == 0x0005
    for place, (kind, yes, no, _) in enumerate(code):
        if kind in (0x15, 0x25, 0x45):
            assert place + 1 + max(yes, no) < len(code)


async def test_a_fault_of_the_host_is_not_shown_to_code(sandbox: Sandbox) -> None:
    """An exception other than ``HostFunctionError`` ends the run at the host, and the code never receives it."""

    async def broken() -> None:
        raise ValueError(SECRET)

    async with ReplSession(sandbox, {"broken": broken}) as session:
        with pytest.raises(ValueError, match=SECRET):
            await session.run("try:\n    broken()\nexcept BaseException as e:\n    FINAL(str(e))")
        assert not session.is_complete
    assert HostFunctionError("ValueError", "x").kind == "ValueError"
