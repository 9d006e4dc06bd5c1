"""Backup and restore of a home: the restored content, and the archives that are refused without any change."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest

from tests.support.commands import Ran, run_trunkline
from trunkline.contracts.turns.messages import TurnCancelRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import TrunklineError
from trunkline.home.backup import END, MANIFEST_MEMBER, SCHEMA, read_backup_manifest, restore_backup
from trunkline.home.paths import Home
from trunkline.home.restore_transaction import roll_back
from trunkline.home.run_file import AlreadyRunning, instance_lock
from trunkline.testing.platform import clean_environ, platform

pytestmark = pytest.mark.anyio


def trunkline(home: Path, *arguments: str, ok: bool = True, **environ: str) -> Ran:
    done = run_trunkline(home, *arguments, **environ)
    assert (done.returncode == 0) is ok, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with settings, and a memory in which something was changed. Tests copy it."""
    folder = tmp_path_factory.mktemp("used")
    home = folder / "home"
    home.mkdir()
    (home / "trunkline.toml").write_text("[gateway]\nport = 0\n[channels]\nenabled = []\n")
    (folder / "notes.md").write_text("needle")
    trunkline(home, "memory", "add", "notes.md")
    return home


@pytest.fixture
def home(used_home: Path, tmp_path: Path) -> Path:
    """A copy of the home, for this test."""
    return shutil.copytree(used_home, tmp_path / "home", symlinks=True)


def archive(
    path: Path, schema: int = SCHEMA, members: dict[str, bytes] | None = None, **kinds: bytes
) -> Path:
    label = {"schema": schema, "version": "9.0.0", "created": "2030-01-01T00:00:00Z", "holds": []}
    with tarfile.open(path, "w") as tar:
        for name, data in {MANIFEST_MEMBER: json.dumps(label).encode(), **(members or {}), END: b""}.items():
            info = tarfile.TarInfo(name)
            info.size, info.type = (
                len(data),
                kinds.get("type", tarfile.REGTYPE) if name not in (MANIFEST_MEMBER, END) else tarfile.REGTYPE,
            )
            info.linkname = "/etc/passwd"
            tar.addfile(info, io.BytesIO(data))
    return path


def test_a_refused_restore_leaves_nothing_behind(tmp_path: Path) -> None:
    """A command refused for its arguments creates no home, no part of one, no lock and no log."""
    (tmp_path / "garbage.tar").write_text("no archive")
    cut = archive(tmp_path / "cut.tar", members={"trunkline.toml": b"[gateway]\nport = 0\n"})
    cut.write_bytes(cut.read_bytes()[:1200])
    unknown = archive(tmp_path / "unknown.tar", members={"trunkline.toml": b"[gatway]\nport = 0\n"})
    before = sorted(tmp_path.rglob("*"))
    for arguments in (
        ("restore", "nothing.tar"), ("restore", "garbage.tar"), ("restore", cut.name), ("restore", unknown.name),
        ("restore", cut.name, "--replace"), ("memory", "import", "nothing.tar"), ("memory", "add", "nothing.md"),
        ("blocks", "create", "../bad"), ("plugins", "install", "./nothing"), ("backup", "garbage.tar"),
        ("memory", "export", "garbage.tar"),
    ):  # fmt: skip
        trunkline(tmp_path / "fresh", *arguments, TRUNKLINE_HOME=str(tmp_path / "deep/home"), ok=False)
        assert sorted(tmp_path.rglob("*")) == before, arguments
    home = tmp_path / "home"
    (home / "memory").mkdir(parents=True)
    (home / "memory/a.md").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    trunkline(home, "restore", cut.name, ok=False)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_home_is_restored_from_its_backup(home: Path, tmp_path: Path) -> None:
    """Memory with its history and the settings; the file is the owner's only, and without the token."""
    file = tmp_path / "b.tar"
    said = json.loads(trunkline(home, "backup", str(file), "--json").stdout)
    assert said["label"]["holds"] == ["memory", "trunkline.toml"]
    assert file.stat().st_mode & 0o777 == 0o600
    again = tmp_path / "again"
    trunkline(again, "restore", str(file))
    assert (again / "trunkline.toml").read_text() == (home / "trunkline.toml").read_text()
    assert "needle" in trunkline(again, "memory", "search", "needle").stdout
    logs = [
        subprocess.check_output(["git", "-C", str(one / "memory"), "log", "--format=%H %s"], text=True)
        for one in (home, again)
    ]
    assert logs[0] == logs[1]
    assert not (again / "token").exists()


def test_agreed_plugin_permissions_are_in_the_backup(home: Path, tmp_path: Path) -> None:
    """Else a plugin that is to run in a process of its own would run inside the workers of the restored home."""
    agreed = '[acme-sky]\nversion = "1.0"\nsha256 = "00"\nsource = "wheel"\n[acme-sky.agreed]\nisolation = "process"\n'
    (home / "plugins.toml").write_text(agreed)
    trunkline(home, "backup", str(tmp_path / "b.tar"))
    trunkline(tmp_path / "again", "restore", str(tmp_path / "b.tar"))
    assert (tmp_path / "again/plugins.toml").read_text() == agreed


@pytest.mark.parametrize("name", ["sub", ".gitfoo"])
def test_a_backup_works_while_a_person_commits(home: Path, tmp_path: Path, name: str) -> None:
    """A submodule and a link are reported by name, stay in history, and are in the restored home."""
    git = ["git", "-C", str(home / "memory"), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    (home / "memory/link").symlink_to("/etc/passwd")
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{name}"], check=True)
    subprocess.run([*git, "add", "link"], check=True)
    subprocess.run([*git, "commit", "-qm", "by hand"], check=True)
    done = trunkline(home, "backup", str(tmp_path / "b.tar"))
    assert f"{name}: it is a submodule" in done.stderr and "link: it is a link" in done.stderr
    exported = json.loads(trunkline(home, "memory", "export", str(tmp_path / "e.tar"), "--json").stdout)
    assert {gap["what"] for gap in exported["gaps"]} == {name, "link"}
    again = tmp_path / "again"
    trunkline(again, "restore", str(tmp_path / "b.tar"))
    assert "needle" in trunkline(again, "memory", "search", "needle").stdout
    tree = subprocess.check_output(
        ["git", "-C", str(again / "memory"), "ls-tree", "-r", "--name-only", "--full-tree", "HEAD"], text=True
    )
    assert {name, "link"} <= set(tree.splitlines())
    assert not (again / "memory/link").is_symlink()


def test_the_token_only_when_asked_for(home: Path, tmp_path: Path) -> None:
    """--with-token; it is the owner's only after the restore too."""
    (home / "token").write_text("secret-token")
    trunkline(home, "backup", str(tmp_path / "b.tar"))
    assert b"secret-token" not in (tmp_path / "b.tar").read_bytes()
    trunkline(home, "backup", str(tmp_path / "b.tar"), "--force", "--with-token")
    trunkline(tmp_path / "again", "restore", str(tmp_path / "b.tar"))
    token = tmp_path / "again/token"
    assert token.read_text() == "secret-token" and token.stat().st_mode & 0o777 == 0o600


async def test_the_bus_store_restores_work_in_progress(home: Path, tmp_path: Path) -> None:
    """An unprocessed message is in the inbox of the restored home. While the platform runs the command is refused."""
    file = tmp_path / "b.tar"
    async with platform(home, workers=("memory",)) as running:
        await running.bus.append(INBOX, TurnCancelRequested(turn="t", by="ann"), conversation="conv_1")
        refused = trunkline(home, "backup", str(file), "--with-bus", ok=False)
        assert "while it is stopped" in refused.stderr and not file.exists()
    trunkline(home, "backup", str(file), "--with-bus")
    trunkline(tmp_path / "again", "restore", str(file))
    seen = json.loads(trunkline(tmp_path / "again", "top", "--once", "--json").stdout)
    assert seen["waiting"] == 1


def test_a_home_that_is_not_empty_is_replaced_only_on_request(home: Path, tmp_path: Path) -> None:
    """It is refused; with --replace the old content is moved aside, complete."""
    file = tmp_path / "b.tar"
    trunkline(home, "backup", str(file))
    before = sorted(path for path in home.rglob("*"))
    assert "is not empty" in trunkline(home, "restore", str(file), ok=False).stderr
    assert sorted(path for path in home.rglob("*")) == before
    (home / "memory/mine.md").write_text("later")
    done = json.loads(trunkline(home, "restore", str(file), "--replace", "--json").stdout)
    assert Path(done["aside"], "memory/mine.md").read_text() == "later"
    assert not (home / "memory/mine.md").exists()
    assert "needle" in trunkline(home, "memory", "search", "needle").stdout


def test_a_byte_of_memory_that_changed_is_found(home: Path, tmp_path: Path) -> None:
    """The sums of memory's export go with a backup; nothing is restored of one that does not fit them."""
    trunkline(home, "backup", str(tmp_path / "b.tar"))
    data = bytearray((tmp_path / "b.tar").read_bytes())
    data[data.index(b"needle")] ^= 1
    (tmp_path / "b.tar").write_bytes(data)
    refused = trunkline(tmp_path / "again", "restore", str(tmp_path / "b.tar"), ok=False)
    assert "has changed since the backup was made" in refused.stderr
    assert not (tmp_path / "again/memory").exists()


KILLED_AT = """
import os, pathlib, sys
left, rename = int(sys.argv[1]), pathlib.Path.rename

def dying(self, target):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return rename(self, target)

pathlib.Path.rename = dying
from trunkline.cli.main import main
main(["restore", sys.argv[2], "--replace"])
"""


def test_a_killed_restore_is_reported_and_undone(home: Path, tmp_path: Path) -> None:
    """For a crash at any move: doctor reports it, and the next start moves the files back and reports that once."""
    file = tmp_path / "b.tar"
    trunkline(home, "backup", str(file))
    (home / "memory/mine.md").write_text("later")
    (home / "trunkline.toml").write_text("[gateway]\nport = 0\n[channels]\nenabled = []\n# later\n")
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    for moves in (0, 1, 3, 5, 50):
        done = subprocess.run(
            [sys.executable, "-c", KILLED_AT, str(moves), str(file)],
            env=environ,
            capture_output=True,
            timeout=60,
        )
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        if moves == 1:
            assert "was interrupted" in trunkline(home, "doctor", ok=False).stdout
            assert "the former files are back" in trunkline(home, "memory", "list", ok=False).stderr
        else:
            assert roll_back(home)
        assert "later" in (home / "trunkline.toml").read_text()
        assert (home / "memory/mine.md").read_text() == "later"
        assert not roll_back(home)
    assert moves == 50 and not (home / "memory/mine.md").exists()
    assert not (home / "restoring.json").exists() and len(list(home.glob("replaced-*"))) == 1


def test_a_newer_archive_is_refused(tmp_path: Path) -> None:
    """Never a downgrade: the sentence names the version that made it, and nothing is touched."""
    home = Home.at(tmp_path / "home")
    file = archive(tmp_path / "new.tar", SCHEMA + 1)
    with pytest.raises(TrunklineError, match=r"9\.0\.0.*newer"):
        restore_backup(home, file)
    assert not home.path.exists()


def test_restoring_a_running_home_is_refused(tmp_path: Path) -> None:
    """Memory is never replaced under a running worker."""
    home = Home.at(tmp_path / "home")
    home.run.mkdir(parents=True)
    with instance_lock(home), pytest.raises(AlreadyRunning):
        restore_backup(home, archive(tmp_path / "x.tar"))


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "memory/../../outside"])
def test_an_archive_path_outside_of_the_home_is_refused(tmp_path: Path, name: str) -> None:
    """An archive may come from anywhere."""
    home = Home.at(tmp_path / "home")
    with pytest.raises(TrunklineError, match="The archive cannot be used: it holds"):
        restore_backup(home, archive(tmp_path / "x.tar", members={name: b"x"}))
    assert not home.path.exists()
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("root", ["{outside}", "../outside"])
def test_a_backups_memory_root_applies_only_on_request(
    tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive may come from anywhere, and its settings with it: nothing is written outside of the home, until the
    environment or the home's own settings name the same place."""
    outside, home = tmp_path / "outside", Home.at(tmp_path / "home")
    settings = f'[runtime]\nmemory_root = "{root.format(outside=outside)}"\n'.encode()
    file = archive(tmp_path / "x.tar", members={"trunkline.toml": settings, "memory/.profile": b"x"})
    with pytest.raises(TrunklineError, match="outside of"):
        restore_backup(home, file)
    assert not outside.exists() and not home.path.exists()
    monkeypatch.setenv("TRUNKLINE_RUNTIME__MEMORY_ROOT", str(outside))
    restore_backup(home, file)
    assert (outside / ".profile").read_bytes() == b"x"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_link_or_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    """Only plain files and folders."""
    with pytest.raises(TrunklineError, match="The archive cannot be used: it holds"):
        restore_backup(
            Home.at(tmp_path / "home"), archive(tmp_path / "x.tar", members={"memory/a": b""}, type=kind)
        )


def test_a_broken_archive_changes_nothing(home: Path, tmp_path: Path) -> None:
    """Cut short anywhere, between two members too: one sentence, and the home is as it was."""
    file = tmp_path / "b.tar"
    trunkline(home, "backup", str(file))
    whole = file.read_bytes()
    with tarfile.open(file) as tar:
        starts = [member.offset for member in tar]
    target = Home.at(tmp_path / "again")
    for length in [
        0,
        100,
        len(whole) // 3,
        *starts[1::3],
        *(start + 512 for start in starts[:-1:3]),
        starts[-1],
    ]:
        file.write_bytes(whole[:length])
        with pytest.raises(TrunklineError):
            restore_backup(target, file)
        assert not target.path.exists(), length


def test_a_file_that_is_not_a_backup_is_reported(tmp_path: Path) -> None:
    """Another tar, and a file that is none at all."""
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("README.txt"))
    with pytest.raises(TrunklineError, match="not a backup"):
        read_backup_manifest(tmp_path / "x.tar")
    with pytest.raises(TrunklineError, match="There is no file"):
        read_backup_manifest(tmp_path / "nothing.tar")
    (tmp_path / "y.tar").write_bytes(msgspec.json.encode({"schema": 1}) * 100)
    with pytest.raises(TrunklineError, match="not a complete tar archive") as refused:
        read_backup_manifest(tmp_path / "y.tar")
    assert "\n" not in refused.value.sentence
