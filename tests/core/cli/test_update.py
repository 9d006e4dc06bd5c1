"""``trunkline update``: a release of its own, a trial on a copy of the home, the change and the way back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from trunkline.cli.checks.bus_checks import server_binary
from trunkline.home.paths import Home
from trunkline.home.releases import read_release_in_use
from trunkline.home.run_file import read_run_file

from .conftest import Run
from .release_wheels import (
    FAILS_TO_MIGRATE,
    NEWER_FORMAT,
    NO_GATEWAY,
    build_wheel,
    environ_of,
    install,
    install_plugin,
    make_dependencies,
    make_release,
)

SYSTEMCTL = Path(__file__).with_name("scripted_systemctl.py")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the scripted service manager is systemd"),
    pytest.mark.timeout(1200),  # a dozen programs start one after the other
]


@dataclass
class Installation:
    """A user with a wheel installation of Trunkline 0.1.0, and folders with the wheels of newer releases: 0.2.0 works,
    0.3.0 cannot migrate a home, 0.4.0 changes its format, and 0.5.0 has no gateway.
    """

    folder: Path
    python: Path
    environ: dict[str, str]

    @property
    def home(self) -> Path:
        return Path(self.environ["TRUNKLINE_HOME"])

    def at(self, name: str) -> "Installation":
        """The same installation with another home, which has settings and something in memory."""
        home = self.folder / name
        environ = {
            **self.environ,
            "TRUNKLINE_HOME": str(home),
            "SYSTEMCTL_STATE": str(self.folder / f"state-{name}"),
        }
        other = Installation(self.folder, self.python, environ)
        home.mkdir()
        (home / "trunkline.toml").write_text("[gateway]\nport = 0\n\n[channels]\nenabled = []\n")
        (home / "service.env").write_text(f"PYTHONPATH={self.environ['PYTHONPATH']}\n")
        return other

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run ``trunkline ARGUMENTS`` to its end, with whatever release is in use."""
        return subprocess.run(
            [self.python, "-m", "trunkline.cli.main", *arguments], env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip

    def version(self) -> str:
        """The release that a command runs."""
        return str(json.loads(self.run("version", "--json").stdout)["trunkline"])

    def wheels(self, version: str) -> str:
        """The folder with the wheel of a release."""
        return str(self.folder / version)

    def killed_at(self, line: str, *arguments: str, alone: bool = False) -> None:
        """Run a command, and kill it with SIGKILL as soon as it prints a line that begins so: with its processes, or
        ``alone``, because the service manager is not part of it.
        """
        with subprocess.Popen(
            [self.python, "-u", "-m", "trunkline.cli.main", *arguments], env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert any(text.startswith(line) for text in process.stdout), line
            os.kill(process.pid, signal.SIGKILL) if alone else os.killpg(process.pid, signal.SIGKILL)

    def service_version(self) -> str:
        """The release of the running service, when it is ready."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if (run := read_run_file(Home.at(self.home))) is not None:
                return run.version
            time.sleep(0.1)
        raise AssertionError((Path(self.environ["SYSTEMCTL_STATE"]) / "log").read_text()[-3000:])


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("update")
    wheel, programs, user = build_wheel(folder), folder / "bin", folder / "user"
    programs.mkdir()
    user.mkdir()
    (programs / "systemctl").write_text(
        f'#!/bin/sh\nunset PYTHONPATH\nexec {sys.executable} {SYSTEMCTL} "$@"\n'
    )
    (programs / "loginctl").write_text("#!/bin/sh\nexit 0\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    server = server_binary()
    assert server is not None
    (programs / "nats-server").symlink_to(server)
    dependencies = make_dependencies(folder / "dependencies")
    environ = environ_of(dependencies, HOME=str(user), TRUNKLINE_MONITOR__ENGINE_PORT="0")
    environ["PATH"] = f"{programs}:{environ['PATH']}"
    for version, changes in (
        ("0.2.0", {}),
        ("0.3.0", FAILS_TO_MIGRATE),
        ("0.4.0", NEWER_FORMAT),
        ("0.5.0", NO_GATEWAY),
    ):
        make_release(wheel, folder / version, version, changes)
    python = install(wheel, folder / "first")
    install_plugin(python)
    return Installation(folder, python, environ)


@pytest.fixture
def service(installation: Installation) -> Iterator[Installation]:
    """An installation whose service runs, and whose memory has a file."""
    here = installation.at("service")
    (here.home / "memory").mkdir()
    (here.home / "memory/garden.md").write_text("Tomatoes want sun.\n")
    try:
        installed = here.run("service", "install")
        assert installed.returncode == 0, installed.stderr
        assert here.service_version() == "0.1.0"
        yield here
    finally:
        here.run("service", "uninstall")


@pytest.mark.slow
@pytest.mark.kill
def test_the_service_changes_to_a_release_and_back(service: Installation) -> None:
    """15.8: an update that is killed at any step leaves a whole release in use and the service running; a release that
    does not become ready is left again; and the way back keeps all data."""
    missing = service.run("update", "--check", "--from", str(service.home / "memory"))
    assert missing.returncode == 1 and "There is no wheel of Trunkline" in missing.stderr
    for line in ("Installing", "Trying"):
        service.killed_at(line, "update", "--yes", "--from", service.wheels("0.2.0"))
        assert read_release_in_use(service.home) is None and service.service_version() == "0.1.0"
    service.killed_at("Restarting", "update", "--yes", "--from", service.wheels("0.2.0"), alone=True)
    assert service.version() == "0.2.0", "the release in use, through the Python of the first installation"
    again = service.run("update", "--yes", "--from", service.wheels("0.2.0"))
    assert again.returncode == 0 and "is up to date" in again.stdout, again.stdout + again.stderr
    assert service.service_version() == "0.2.0"
    releases = service.home / "releases"
    assert list(releases.glob("trial-*")) == [] and (releases / "before-0.2.0.tar").exists()
    assert [*releases.glob("0.2.0/lib/python*/site-packages/trunkline_weather/__init__.py")], (
        "the owner's plugin"
    )

    failed = service.run("update", "--yes", "--from", service.wheels("0.5.0"))
    assert failed.returncode == 1 and "did not become ready" in failed.stderr, failed.stdout + failed.stderr
    assert "0.2.0 is in use again" in failed.stderr and service.service_version() == "0.2.0"

    back = service.run("update", "--back", "--yes")
    assert back.returncode == 0 and "All data stays as it is" in back.stdout, back.stdout + back.stderr
    assert service.service_version() == service.version() == "0.1.0"
    assert (service.home / "memory/garden.md").read_text() == "Tomatoes want sun.\n"


def test_a_release_that_cannot_use_the_home_changes_nothing(installation: Installation) -> None:
    """15.8: the trial runs on a copy, so its failure leaves the home and the release in use as they were."""
    here = installation.at("refused")
    before = (here.home / "trunkline.toml").read_bytes()
    failed = here.run("update", "--yes", "--from", here.wheels("0.3.0"))
    assert failed.returncode == 1 and "this release is broken" in failed.stderr, failed.stdout + failed.stderr
    assert "Nothing was changed" in failed.stderr and "Traceback" not in failed.stderr
    assert here.version() == "0.1.0" and read_release_in_use(here.home) is None
    assert (here.home / "trunkline.toml").read_bytes() == before and list(
        here.home.glob("releases/trial-*")
    ) == []


def test_going_back_from_a_newer_format_restores_and_deletes_nothing(installation: Installation) -> None:
    """15.8: a release that changed the format of the home is left with the data of before; what came since is kept."""
    here = installation.at("migrated")
    none = here.run("update", "--back", "--yes")
    assert none.returncode == 1 and "no former release" in none.stderr
    (here.home / "memory").mkdir()
    (here.home / "memory/garden.md").write_text("before\n")
    done = here.run("update", "--yes", "--from", here.wheels("0.4.0"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert here.run("backup", str(here.folder / "after.tar")).returncode == 0
    assert json.loads((here.home / "form.json").read_text())["form"] == 3
    (here.home / "memory/garden.md").write_text("after\n")
    back = here.run("update", "--back", "--yes")
    assert back.returncode == 0 and "Nothing is deleted" in back.stdout, back.stdout + back.stderr
    assert here.version() == "0.1.0" and json.loads((here.home / "form.json").read_text())["form"] == 2
    assert (here.home / "memory/garden.md").read_text() == "before\n"
    assert [file.read_text() for file in here.home.glob("replaced-*/memory/garden.md")] == ["after\n"]
    again = here.run("update", "--back", "--yes")
    assert again.returncode == 1 and "former release already" in again.stderr and here.version() == "0.1.0"


def test_a_source_checkout_is_updated_with_git(trunkline: Run) -> None:
    """15.8: the files of a checkout are its owner's; the error says what to do."""
    refused = trunkline("update", "--check")
    assert refused.returncode == 1 and "source checkout" in refused.stderr and "git pull" in refused.stderr
