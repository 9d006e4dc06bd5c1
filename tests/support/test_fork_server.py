"""A forked program behaves like the same program started by Python."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from trunkline.testing.platform import clean_environ

PROGRAM = (sys.executable, "-m", "trunkline.cli.main")
MODULES = {
    "more": {
        "rain.py": "import trunkline\n\n@trunkline.hookimpl\ndef trunkline_tools():\n    return []\n",
        "rain-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: rain\nVersion: 1.0\n",
        "rain-1.0.dist-info/entry_points.txt": "[trunkline]\nrain = rain\n",
    },
    "replaced": {"click/__init__.py": "raise SystemExit('another click')"},
    "customized": {"sitecustomize.py": "print('customized')"},
}
"""Folders of modules: a plugin, a package in place of another one, and a module that Python imports at its start."""
PROVIDER = (sys.executable, "-m", "trunkline.testing.scripted_provider")


@pytest.fixture(autouse=True)
def forks(request: pytest.FixtureRequest) -> None:
    """Without the server there is nothing to compare."""
    if sys.platform != "linux" or request.config.getoption("no_fork_server"):
        pytest.skip("programs are not forked")


@pytest.fixture
def provider() -> Iterator[subprocess.Popen[str]]:
    """A forked program that runs."""
    with subprocess.Popen(PROVIDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("words", "given", "environ"),
    [
        (["version"], "", {}),
        (["--help"], "", {"COLUMNS": "60"}),
        (["nonsense"], "", {}),
        (["config", "--json"], "", {"TRUNKLINE_GATEWAY__PORT": "1"}),
        (["config", "set", "gateway.port", "none"], "", {}),
        (["plugins", "list", "--json"], "", {"TRUNKLINE_DEBUG": "1"}),
        (["memory", "list"], "", {}),
        (["say", "--block", "nobody"], "a message \udce9", {}),
        (["version"], "", {"PYTHONUNBUFFERED": "1"}),
        (["version"], "", {"PYTHONIOENCODING": "latin-1"}),
        (["plugins", "list", "--json"], "", {"PYTHONPATH": "more:none:home"}),
        (["version"], "", {"PYTHONPATH": "replaced"}),
        (["version"], "", {"PYTHONPATH": "customized"}),
    ],
)
def test_a_command_prints_and_returns_the_same(
    words: list[str], given: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """This holds for a fork and for a new interpreter, which naming the executable requests."""
    (tmp_path / "home").mkdir()
    for folder, files in MODULES.items():
        for name, text in files.items():
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)
    options: dict[str, Any] = {
        "input": given, "capture_output": True, "text": True, "errors": "surrogateescape", "cwd": tmp_path,
        "env": {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path / "home"), "COLUMNS": "100", **environ},
    }  # fmt: skip
    anew, forked = (
        subprocess.run([*PROGRAM, *words], executable=executable, timeout=110, check=False, **options)
        for executable in (sys.executable, None)
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (anew.returncode, anew.stdout, anew.stderr)
    assert ('"rain"' in forked.stdout) == (environ.get("PYTHONPATH", "").startswith("more"))


def test_a_forked_program_is_a_child_that_can_be_killed(provider: subprocess.Popen[str]) -> None:
    """The program has a separate id, and its parent is notified of its end."""
    process = psutil.Process(provider.pid)
    assert process.ppid() == os.getpid()
    assert _is_forked(process)
    assert [file.fd for file in process.open_files()] == []
    provider.kill()
    assert provider.wait(60) == -signal.SIGKILL
    assert not psutil.pid_exists(process.pid)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have this process heed Ctrl-C. In the background of a shell it ignores it, and so do the programs it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_forked_program_heeds_ctrl_c(ctrl_c: None, provider: subprocess.Popen[str]) -> None:
    """The server ignores the signal; a forked program does not."""
    provider.send_signal(signal.SIGINT)
    assert provider.wait(60) in {-signal.SIGINT, 1}


def test_standard_input_ends_when_the_test_closes_it() -> None:
    """Neither the server nor another program holds the pipe's other end."""
    command = [*PROVIDER, "--until-eof"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:
        for process in (first, second):
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline()
            process.stdin.close()
            assert process.wait(60) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"executable": sys.executable},
        {"env": {**os.environ, "PYTHONHASHSEED": "1"}},
        {"env": {**os.environ, "OTEL_SERVICE_NAME": "other"}},
        {"env": {**os.environ, "LONG": "x" * 100_000}},
        {"umask": 0o077},
        {"process_group": 0},
        {"preexec_fn": lambda: None},
    ],
)
def test_an_unusual_program_starts_its_own_process(options: dict[str, Any]) -> None:
    """A fork could differ from a start for these."""
    with subprocess.Popen([*PROVIDER], stdout=subprocess.PIPE, text=True, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        assert not _is_forked(psutil.Process(process.pid))
        process.kill()


def test_the_missing_folder_of_a_program_is_reported(tmp_path: Path) -> None:
    """The error is that of ``Popen``."""
    with pytest.raises(FileNotFoundError):
        subprocess.run(PROGRAM, cwd=tmp_path / "none", check=False)


def _is_forked(process: psutil.Process) -> bool:
    return "tests.support.fork_server" in process.cmdline()
