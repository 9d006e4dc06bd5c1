"""The search for delegated control groups: in folders laid out as the kernel does, and in the kernel's own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import pytest

from trunkline_sandbox.bubblewrap import cgroups


def lay(folder: Path, *, controllers: str = "cpu memory pids", on: str = "", processes: str = "") -> None:
    """A group of version 2 as the kernel shows it."""
    folder.mkdir(exist_ok=True)
    for name, text in (("controllers", controllers), ("subtree_control", on), ("procs", processes)):
        (folder / f"cgroup.{name}").write_text(text)


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The group of a system's unit whose process is in a group below it, as with ``DelegateSubgroup=worker``."""
    lay(tmp_path, on="cpu memory pids")
    lay(tmp_path / "system.slice", on="cpu memory pids")
    lay(tmp_path / "system.slice" / "tools.service")
    lay(tmp_path / "system.slice" / "tools.service" / "worker", processes="1")
    monkeypatch.setattr(cgroups, "_mounts", lambda: {"": tmp_path})
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": "/system.slice/tools.service/worker"})
    return tmp_path / "system.slice" / "tools.service"


def test_a_delegated_group_is_used(unit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its controllers are enabled, and no group above it is changed."""
    monkeypatch.setattr(cgroups, "_is_ours", lambda folder: folder == unit)
    assert cgroups._enabled_controllers(unit) == {
        "+pids"
    }  # a plain file keeps the last word that was written
    assert (unit.parent / "cgroup.subtree_control").read_text() == "cpu memory pids"
    assert (unit / "worker" / "cgroup.subtree_control").read_text() == ""


@pytest.mark.parametrize("wrong", ["not ours", "with processes", "without controllers"])
def test_groups_that_are_not_delegated_are_not_changed(
    unit: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """A group of others, one with processes in it, and one without memory."""
    monkeypatch.setattr(cgroups, "_is_ours", lambda folder: wrong != "not ours")
    if wrong == "with processes":
        lay(unit, processes="17")
    if wrong == "without controllers":
        lay(unit, controllers="cpu")
    assert cgroups._enabled_controllers(unit) == set()
    assert (unit / "cgroup.subtree_control").read_text() == ""


def test_a_user_scope_uses_the_slice_of_its_user_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``systemd-run --user --scope``: the slice of the user's own systemd has the controllers on."""
    lay(tmp_path, on="cpu memory pids")
    lay(tmp_path / "app.slice", on="memory pids")
    lay(tmp_path / "app.slice" / "run-1.scope", processes="1")
    monkeypatch.setattr(cgroups, "_mounts", lambda: {"": tmp_path})
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": "/app.slice/run-1.scope"})
    slice_ = tmp_path / "app.slice"
    assert cgroups.find_root() == cgroups.CgroupRoot(2, (("memory", slice_), ("pids", slice_)))


def _unified() -> Path | None:
    return cgroups._mounts().get("")


CONTROLLER = next(iter(cgroups._words((_unified() or Path("/nowhere")) / "cgroup.controllers")), "")


@pytest.fixture
def real() -> Iterator[Path]:
    """A group of the kernel's with one below it that has a process."""
    mount = _unified()
    if mount is None or os.geteuid() != 0 or not CONTROLLER:
        pytest.skip("this machine shows root no groups of version 2 with a controller")
    unit, program = mount / f"test-{token_hex(4)}", subprocess.Popen(["sleep", "60"])
    try:
        (mount / "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
        (unit / "worker").mkdir(parents=True)
        (unit / "worker" / "cgroup.procs").write_text(str(program.pid))
        yield unit
    except OSError as error:
        pytest.skip(f"no group can be made here: {error}")
    finally:
        program.kill()
        program.wait()
        for folder in (*unit.glob("*/"), unit):
            with suppress(OSError):
                folder.rmdir()


def test_the_kernel_moves_programs_into_a_delegated_group(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a controller that this kernel has. Root's own right is no delegation: without systemd's mark nothing is
    switched on."""
    monkeypatch.setattr(cgroups, "NEEDED", frozenset({CONTROLLER}))
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": f"/{real.name}/worker"})
    assert cgroups._enabled_controllers(real) == set()
    os.setxattr(real, "trusted.delegate", b"1")
    place = cgroups.find_root()
    assert place is not None and place.folders[0] == (CONTROLLER, real)
    process = int((real / "worker" / "cgroup.procs").read_text())
    (real / "trunkline-x").mkdir()
    (real / "trunkline-x" / "cgroup.procs").write_text(str(process))
    assert (real / "trunkline-x" / "cgroup.procs").read_text().split() == [str(process)]
    os.kill(process, 9)
