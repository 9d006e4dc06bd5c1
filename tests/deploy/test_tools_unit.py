"""The restrictions of systemd's unit for the tools worker, reproduced with mounts: programs still have their
sandbox."""

import configparser
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.testing.platform import clean_environ

from .installation import ROOT

TAKES = {
    "ProtectProc": "mount -t proc -o hidepid=invisible proc /proc",
    "ProtectKernelTunables": "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys",
    "PrivateDevices": "mount -t tmpfs tmpfs /dev/net",
}
"""How systemd does what these settings say, as far as a sandbox meets it (systemd.exec(5))."""

CHECKS = ("sandbox.available", "sandbox.network")


def unit() -> configparser.SectionProxy:
    """The settings of the service."""
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(ROOT / "deploy/systemd/trunkline-tools.service")
    return read["Service"]


def found(home: Path, takes: list[str]) -> dict[str, str]:
    """Return doctor's result for the sandbox under this restriction."""
    doctor = f"exec {sys.executable} -m trunkline.cli.main doctor --json"
    script = " && ".join(("mount --make-rprivate /", *takes, doctor))
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout, done.stderr
    checks = {one["id"]: one["status"] for one in json.loads(done.stdout)["checks"]}
    return {name: checks[name] for name in CHECKS}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home. Skips where a program has no sandbox with a network anyhow."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounts of its own need root and unshare")
    if set(found(tmp_path / "plain", []).values()) != {"ok"}:
        pytest.skip("no sandbox with a network works here at all")
    return tmp_path / "home"


def test_programs_have_a_sandbox_under_the_unit_as_shipped(home: Path) -> None:
    """Namespaces with a /proc of their own, and a network for those that may have one."""
    service = unit()
    taken = [how for name, how in TAKES.items() if service.get(name, "no") not in ("no", "default")]
    assert found(home, taken) == dict.fromkeys(CHECKS, "ok")


@pytest.mark.parametrize(
    ("name", "lost"),
    [("ProtectKernelTunables", "sandbox.available"), ("PrivateDevices", "sandbox.network")],
)
def test_hardening_of_other_units_would_break_the_sandbox(home: Path, name: str, lost: str) -> None:
    """Why the unit of tools is without them."""
    assert found(home, [TAKES[name]])[lost] == "warning"


def test_the_unit_keeps_background_tasks_after_the_worker_ends() -> None:
    """systemd would end their supervisors with the worker; the unit permits harmless devices and the network's only."""
    service = unit()
    assert service["KillMode"] == "process"
    assert (service["DevicePolicy"], service["DeviceAllow"]) == ("closed", "/dev/net/tun rw")
