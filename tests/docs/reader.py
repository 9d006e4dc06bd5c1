"""A reader who follows a page: types its commands in a separate checkout, and checks the shown output.

The checkout is a folder with the Makefile, the examples and a ``.venv`` that sees this installation; packages that the
reader installs stay in it. ``scripts/setup`` does nothing in it, because that was done before the tests. The home
folder is a new one. The gateway's port and a provider's address are replaced by free ones in all text that is read and
typed.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.ports import free_port
from tests.support.tmux import Tmux
from trunkline.config import load_config
from trunkline.plugins import Plugins
from trunkline.testing.platform import clean_environ
from trunkline.testing.scripted_provider import ScriptedProvider

from .expected import Shown
from .forwarding import CLIENT_FILE, SOCKET, Forwarder
from .markdown import ROOT, Block

GATEWAY, SERVER, PROVIDER = "127.0.0.1:8420", "127.0.0.1:14222", "http://127.0.0.1:11434/v1"
STAYS = re.compile(r"(?:make up|trunkline up|trunkline run|nats-server)\b")
"""Commands that run until they are stopped; the page goes on in another terminal."""

SITS = re.compile(r"(?:make|trunkline) chat\b")
TIMEOUT = 60.0
DONE = "__the_reader_is_back__"

SCRIPTS = {
    "trunkline": f'[ -z "${SOCKET}" ] || exec {sys.executable} -I -S "${{{SOCKET}%/*}}/{CLIENT_FILE}" "$@"\n'
    'exec "$(dirname "$0")/python" -m trunkline.cli.main "$@"',
    "pytest": 'exec "$(dirname "$0")/python" -m pytest -q -p no:cacheprovider "$@"',
    "pip": 'verb=$1; shift; exec "$(dirname "$0")/python" -m pip --quiet --disable-pip-version-check "$verb" '
    '--no-index --no-deps --no-build-isolation "$@"',
}


class Reader:
    """Follows one page from its first block to its last. Use in a ``with`` block; its processes end with that.

    With ``forwards``, commands run as forks of this process and not in the folder's ``.venv``, except those that stay
    and those at a terminal.
    """

    def __init__(self, folder: Path, *, forwards: bool = False) -> None:
        self.folder = folder / "trunkline"
        self._forwards = forwards
        self.home = folder / "home"
        self._ids: dict[str, str] = {}
        self._running: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self._addresses = {GATEWAY: f"127.0.0.1:{self._port}", SERVER: f"127.0.0.1:{free_port()}"}
        self._stack = ExitStack()

    def __enter__(self) -> "Reader":
        self.home.mkdir()
        _make_checkout(self.folder)
        self._environ = {
            **clean_environ(),
            "HOME": str(self.home),
            "PATH": f"{self.folder / '.venv' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "100",
            "LC_ALL": "C.UTF-8",
        }
        forwarding = {SOCKET: str(self._stack.enter_context(Forwarder()).address)} if self._forwards else {}
        self._shell = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=self.folder, env=self._environ | forwarding, text=True, start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._running):
            _stop(process)
        if error is not None:
            os.killpg(self._shell.pid, signal.SIGKILL)  # it may hang in a command
        self._shell.communicate()
        self._stack.close()

    # Blocks ----------------------------------------------------------------------------------------------------

    def read(self, block: Block) -> None:
        """Perform a block. Raises AssertionError with its place when the page is wrong."""
        if not block.runs:
            return
        if block.file:
            return self._write(block)
        follow: dict[str, Callable[[Block], None]] = {
            "console": self._console,
            "sh": self._sh,
            "python": self._python,
            "toml": self._toml,
            "json": lambda block: json.loads(block.text),
        }
        if block.language in follow:
            follow[block.language](block)

    def _write(self, block: Block) -> None:
        path = Path(block.file.replace("~", str(self.home), 1))
        target = path if path.is_absolute() else Path(self._run("pwd")[0].strip()) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._real(block.text), encoding="utf-8")

    def _console(self, block: Block) -> None:
        for command, shown in _commands(block.text):
            if command == "^C":
                _stop(self._running.pop(), signal.SIGINT)
            elif STAYS.match(command):
                self._stays(block, command, shown)
            elif SITS.match(command) and "› " in shown:
                self._sits(block, command, shown)
            else:
                self._types(block, command, shown)

    def _types(self, block: Block, command: str, shown: str) -> None:
        came, status = self._run(self._real(command))
        learned = Shown(self._real(shown)).learned(came)
        assert learned is not None, f"{block.place}: $ {command}\nshown:\n{shown}\ncame:\n{came}"
        fails = "Error: " in shown or "ERROR " in shown
        assert (status != 0) == fails, f"{block.place}: $ {command}\nleft with {status}:\n{came}"
        self._ids |= learned

    def _stays(self, block: Block, command: str, shown: str) -> None:
        variables = self._run("env -0")[0].split("\0")
        environ = dict(variable.split("=", 1) for variable in variables if "=" in variable)
        environ |= {"TRUNKLINE_MONITOR__ENGINE_PORT": "0", "TRUNKLINE_GATEWAY__PORT": str(self._port)}
        environ.pop(SOCKET, "")  # what stays is signalled
        file = self.home.parent / f"background-{len(self._running)}.out"
        with file.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self._real(command)}"], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, cwd=self._run("pwd")[0].strip(), env=environ, start_new_session=True,
            )  # fmt: skip
        self._running.append(process)
        expected = Shown(self._real(shown))
        deadline = time.monotonic() + TIMEOUT
        while expected.learned(file.read_text(), whole=False) is None:
            assert time.monotonic() < deadline, f"{block.place}: $ {command}\ncame:\n{file.read_text()}"
            time.sleep(0.05)

    def _sits(self, block: Block, command: str, shown: str) -> None:
        """Sit at a real terminal, typing what follows each ``› ``."""
        environ = shlex.join(f"{name}={value}" for name, value in self._environ.items())
        line = f"cd {shlex.quote(str(self.folder))} && env -i {environ} {command}"
        said = ""
        with Tmux(line, columns=100, rows=300) as terminal:
            terminal.wait_until(lambda: " ›" in terminal.screen())
            for part in re.split(r"^(?=› )", self._real(shown), flags=re.MULTILINE):
                if part.startswith("› "):
                    terminal.type(part.partition("\n")[0].removeprefix("› "))
                said += part
                self._seen(block, said, terminal)
                terminal.wait_until(lambda: _rests(terminal))  # a person lets an answer end before typing on

    def _seen(self, block: Block, said: str, terminal: Tmux) -> None:
        expected = Shown(said)
        try:
            terminal.wait_until(lambda: expected.learned(terminal.screen(), whole=False) is not None)
        except AssertionError as error:
            raise AssertionError(f"{block.place}: shown:\n{said}\n{error}") from None
        self._ids |= expected.learned(terminal.screen(), whole=False) or {}

    def _sh(self, block: Block) -> None:
        came, status = self._run(self._real(block.text))
        assert status == 0, f"{block.place} left with {status}:\n{came}"

    def _python(self, block: Block) -> None:
        file = self.home.parent / "block.py"
        file.write_text(self._real(block.text), encoding="utf-8")
        came, status = self._run(f"python {file}")
        assert status == 0, f"{block.place} left with {status}:\n{came}"

    def _toml(self, block: Block) -> None:
        """Check that the configuration is accepted; a plugin's ``pyproject.toml`` only has to be TOML."""
        text = self._real(block.text)
        if "[project" in text:
            tomllib.loads(text)
            return
        scratch = self.home.parent / "scratch"
        scratch.mkdir(exist_ok=True)
        (scratch / "trunkline.toml").write_text(text, encoding="utf-8")
        config = load_config(scratch, environ={})
        problems = Plugins.load(config).config_problems()
        assert not problems, f"{block.place}: {problems}"

    # Typing ----------------------------------------------------------------------------------------------------

    def _run(self, command: str) -> tuple[str, int]:
        """Return the output of a command, and its exit status. The shell stays the same for the whole page."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f"{{\n{command}\n}} </dev/null\nback=$?; echo; echo {DONE} $back\n")
        self._shell.stdin.flush()
        lines = []
        for line in self._shell.stdout:
            if line.startswith(DONE):
                return "".join(lines)[:-1], int(line.split()[1])
            lines.append(line)
        raise AssertionError("the shell ended:\n" + "".join(lines))

    def _real(self, text: str) -> str:
        """The text with this run's addresses and ids in place of those that the page shows."""
        if PROVIDER in text and PROVIDER not in self._addresses:
            self._addresses[PROVIDER] = self._stack.enter_context(
                ScriptedProvider(models=("scripted", "llama3.2"))
            ).url
        for shown, real in (*self._addresses.items(), *self._ids.items()):
            text = text.replace(shown, real)
        return text


def _commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with its shown output. A backslash continues a command."""
    found: list[tuple[str, str]] = []
    open_ = False
    for line in text.splitlines(keepends=True):
        if open_:
            found[-1] = (found[-1][0] + "\n" + line.rstrip("\n"), "")
        elif line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif line.strip() == "^C":
            found.append(("^C", ""))
        else:
            command, shown = found[-1]
            found[-1] = (command, shown + line)
            continue
        open_ = line.endswith("\\\n")
    return found


def _make_checkout(folder: Path) -> None:
    shutil.copytree(
        ROOT / "docs" / "examples", folder / "docs" / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "Makefile", folder)
    setup = folder / "scripts" / "setup"
    setup.parent.mkdir()
    setup.write_text("#!/bin/sh\n")
    setup.chmod(0o755)
    environment = folder / ".venv"
    venv.EnvBuilder(symlinks=True, with_pip=False).create(environment)
    (packages,) = environment.glob("lib/python*/site-packages")
    installed = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "installed.pth").write_text(f"import site; site.addsitedir({installed!r})\n")
    for name, body in SCRIPTS.items():
        script = environment / "bin" / name
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)


def _rests(terminal: Tmux) -> bool:
    """Report whether the screen has been unchanged for a moment."""
    before = terminal.screen()
    time.sleep(0.7)
    return terminal.screen() == before


def _stop(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
    """End one of our processes, with its child processes."""
    process.send_signal(how)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
