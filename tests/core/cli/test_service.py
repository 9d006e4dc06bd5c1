"""``trunkline service``: the platform in the background, under a service manager."""

import json
import os
import plistlib
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline.cli._support.launchd import Launchd
from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.home.paths import Home
from trunkline.testing.platform import clean_environ

from .conftest import Run

SYSTEMCTL = Path(__file__).with_name("scripted_systemctl.py")

NEEDS_PROC = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose name needs quotes and escapes."""
    return tmp_path / 'my 100% "$HOME"'


@pytest.fixture
def environ(tmp_path: Path, home: Path) -> Iterator[dict[str, str]]:
    """A user with a service manager, and no running service afterwards."""
    programs, user = tmp_path / "bin", tmp_path / "user"
    programs.mkdir()
    user.mkdir()
    (programs / "systemctl").write_text(f'#!/bin/sh\nexec {sys.executable} {SYSTEMCTL} "$@"\n')
    (programs / "loginctl").write_text("#!/bin/sh\necho not here >&2; exit 1\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    given = {
        **clean_environ(), "HOME": str(user), "TRUNKLINE_HOME": str(home), "COLUMNS": "100",
        "PATH": f"{programs}:{os.environ['PATH']}", "SYSTEMCTL_STATE": str(tmp_path / "state"),
        "TRUNKLINE_GATEWAY__PORT": "0",
    }  # fmt: skip
    given.pop("XDG_CONFIG_HOME", None)
    yield given
    subprocess.run(
        [programs / "systemctl", "--user", "disable", "--now", unit(user).name], env=given, check=False
    )


def unit(user: Path) -> Path:
    """The file of the only unit, or one that does not exist."""
    found = [*(user / ".config/systemd/user").glob("trunkline-*.service")]
    return found[0] if found else user / "none.service"


def until_ready(trunkline: Run) -> dict[str, object]:
    """Return the state of the service when Trunkline answers."""
    end = time.monotonic() + 60
    while True:
        state: dict[str, object] = json.loads(trunkline("service", "status", "--json").stdout)
        if state["address"]:
            return state
        assert time.monotonic() < end, state
        time.sleep(0.1)


@NEEDS_PROC
def test_a_service_runs_restarts_and_is_removed(
    trunkline: Run, environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    """Installed, it runs with the variables of its file; restarted, it is another process; removed, nothing is left."""
    home.mkdir()
    (home / "service.env").write_text("TRUNKLINE_GATEWAY__PORT=0\n")
    installed = trunkline("service", "install")
    assert installed.returncode == 0, installed.stderr
    assert "only while you are logged in" in installed.stdout and "enable-linger" in installed.stdout
    assert stat.S_IMODE((home / "service.env").stat().st_mode) == 0o600
    first = until_ready(trunkline)
    assert first["running"] is True and str(first["address"]).startswith("http://127.0.0.1:")
    assert trunkline("service", "install").returncode == 0, "an installed service is installed again"
    second = until_ready(trunkline)
    assert trunkline("service", "restart").returncode == 0
    third = until_ready(trunkline)
    assert len({first["pid"], second["pid"], third["pid"]}) == 3
    shown = trunkline("service", "status")
    assert f"runs as process {third['pid']}" in shown.stdout and str(third["address"]) in shown.stdout
    assert trunkline("service", "uninstall").returncode == 0
    gone = trunkline("service", "status")
    assert gone.returncode == 1 and "is not installed" in gone.stdout
    assert not unit(tmp_path / "user").exists() and not (tmp_path / "state/enabled").exists()


@NEEDS_PROC
def test_a_running_platform_is_not_taken_over(trunkline: Run, environ: dict[str, str], home: Path) -> None:
    """Two programs cannot run on one home, and the one in a terminal may be in use."""
    command = [sys.executable, "-m", "trunkline.cli.main", "up"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert "is ready at" in running.stdout.readline()
            refused = trunkline("service", "install")
        finally:
            running.terminate()
    assert refused.returncode == 1
    assert (
        f"already runs on this home, as process {running.pid}" in refused.stderr
        and "Stop it" in refused.stderr
    )


@NEEDS_PROC
@pytest.mark.parametrize("verb", ["uninstall", "restart", "logs"])
def test_what_is_not_installed_is_said(trunkline: Run, environ: dict[str, str], verb: str) -> None:
    refused = trunkline("service", verb)
    assert refused.returncode == 1 and "trunkline service install" in refused.stderr


@NEEDS_PROC
def test_without_a_service_manager_the_error_says_what_to_do(trunkline: Run, tmp_path: Path) -> None:
    refused = trunkline("service", "status", env={"PATH": str(tmp_path)})
    assert refused.returncode == 1 and "neither systemd nor launchd" in refused.stderr


@NEEDS_PROC
def test_the_unit_is_one_that_systemd_accepts(
    trunkline: Run, environ: dict[str, str], tmp_path: Path
) -> None:
    """``--show`` changes nothing, and systemd itself finds nothing wrong with the unit."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    shown = trunkline("service", "install", "--show")
    assert shown.returncode == 0 and not unit(tmp_path / "user").exists()
    file = tmp_path / "trunkline.service"
    file.write_text(shown.stdout)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(file)],
        env={**environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "trunkline.service" in line] == []


def test_two_homes_have_two_services(tmp_path: Path) -> None:
    """The usual home has the short name."""
    names = [ServiceDefinition.of(Home.at(path)).name for path in (tmp_path / "a/x", tmp_path / "b/x")]
    assert len(set(names)) == 2 and all(name.startswith("trunkline-") for name in names)
    assert ServiceDefinition.of(Home.at(Path.home() / ".trunkline")).name == "trunkline"


def test_the_agent_of_launchd_runs_the_program_with_the_variables(home: Path) -> None:
    """The property list is read back, and its command is run as launchd would run it."""
    home.mkdir()
    (home / "service.env").write_text("KEY='a b'\n")
    program = (sys.executable, "-c", "import os; print(os.environ['KEY'], os.environ['TRUNKLINE_HOME'])")
    definition = ServiceDefinition("trunkline", home, program, os.environ["PATH"], home / "service.env")
    agent = plistlib.loads(Launchd().text(definition).encode())
    said = subprocess.run(
        agent["ProgramArguments"],
        env=agent["EnvironmentVariables"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"a b {home}\n"
    assert agent["KeepAlive"] and agent["RunAtLoad"] and agent["Label"] == "org.trunkline.trunkline"
