"""``trunkline memory export`` and ``import``, as a person uses them: between homes, locked, out of bad archives."""

import io
import json
import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pyrage
import pytest

from tests.support.commands import Ran, Run, run_trunkline
from trunkline._util.archives import encryption
from trunkline._util.archives.encryption import (
    ArchiveEncryptionError,
    DecryptionKeys,
    Recipients,
    decrypt,
    encrypt,
)
from trunkline.contracts.memory.archive_extraction import extract_archive
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.import_preparation import prepare_import
from trunkline.contracts.memory.subjects import MEMORY_READ
from trunkline.errors import TrunklineError
from trunkline.testing.platform import platform


@pytest.fixture
def memory(tmp_path: Path) -> Run:
    """Runs ``trunkline memory ARGUMENTS`` on one of several homes."""

    def run(home: str, *arguments: object, ok: bool = True, **environ: str) -> Ran:
        done = run_trunkline(tmp_path / home, "memory", *arguments, **{"COLUMNS": "200", **environ})
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_an_encrypted_memory_moves_to_another_machine(memory: Run, tmp_path: Path) -> None:
    """FS-1: a memory exported for a key is imported with it elsewhere: the files, their history, and the gaps.
    Without the key there is no access, and no plain copy stays anywhere. A second import changes nothing."""
    (tmp_path / "notes.md").write_text("needle in the garden\n")
    memory("one", "add", "notes.md")
    (tmp_path / "one/memory/preferences.toml").write_text('model = "weather/rain"\n')
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(f"# mine\n{identity}\n")
    said = memory("one", "export", "all.age", "--recipient", identity.to_public(), "--json")
    assert json.loads(said.stdout)["locked"] and stat.S_IMODE((tmp_path / "all.age").stat().st_mode) == 0o600
    assert b"needle" not in (tmp_path / "all.age").read_bytes()
    assert "--identity" in memory("two", "import", "all.age", ok=False).stderr
    done = memory("two", "import", "all.age", "--identity", "key.txt")
    assert "the model weather/rain of preferences.toml: there is no adapter 'weather' here" in done.stdout
    assert memory("two", "show", "documents/notes.md").stdout == "needle in the garden\n"
    assert "weather/rain" in memory("two", "show", "preferences.toml").stdout
    logs = [
        subprocess.check_output(
            ["git", "-C", str(tmp_path / home / "memory"), "log", "--format=%H", "--", "documents"]
        )
        for home in ("one", "two")
    ]
    assert logs[0] == logs[1] != b""
    assert memory("two", "import", "all.age", "--identity", "key.txt").stdout.startswith("Nothing to do")
    left = [file for home in ("one", "two") for file in (tmp_path / home / "cache").rglob("*.tar")]
    assert left == [] and not list(tmp_path.rglob(".carry-*"))


def test_a_passphrase_comes_from_a_file_or_a_variable(memory: Run, tmp_path: Path) -> None:
    """It is never an argument of the command; a wrong one changes nothing; without a terminal there is no prompt."""
    (tmp_path / "secret").write_text("correct horse\n")
    memory("one", "export", "all.age", "--passphrase-file", "secret")
    assert (
        "Asking for a passphrase needs a terminal"
        in memory("one", "export", "x.age", "--passphrase", ok=False).stderr
    )
    assert not (tmp_path / "x.age").exists()
    wrong = memory("two", "import", "all.age", "--passphrase-env", "PHRASE", ok=False, PHRASE="wrong")
    assert "the passphrase does not match" in wrong.stderr and "wrong" not in wrong.stderr.replace(
        "wrong one", ""
    )
    memory("two", "import", "all.age", "--passphrase-env", "PHRASE", PHRASE="correct horse")


@pytest.mark.anyio
async def test_an_import_reaches_the_instance_that_runs(memory: Run, tmp_path: Path) -> None:
    """The memory worker imports it, and serves the result at once; an unpacked export works like the file."""
    import anyio

    (tmp_path / "notes.md").write_text("from elsewhere")
    await anyio.to_thread.run_sync(memory, "one", "add", "notes.md")
    await anyio.to_thread.run_sync(memory, "one", "export", "all.tar")
    (tmp_path / "unpacked").mkdir()
    with tarfile.open(tmp_path / "all.tar") as tar:
        # Python 3.11.4 has the filter, Debian 12 has 3.11.2.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(tmp_path / "unpacked")
    async with platform(tmp_path / "two", workers=("memory",)) as running:
        await anyio.to_thread.run_sync(memory, "two", "import", "unpacked")
        found = await running.bus.call(MEMORY_READ, ReadMemory(path="documents/notes.md"))
        assert found.content == "from elsewhere"
        again = await anyio.to_thread.run_sync(memory, "two", "import", "all.tar")
        assert again.stdout.startswith("Nothing to do")


def test_a_folder_with_borrowed_or_shallow_history_is_refused(tmp_path: Path) -> None:
    """Borrowed objects and cut-off histories are no whole memory; hooks and configuration of a folder stay there."""
    root = tmp_path / "memory"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True, timeout=30)
    (root / "AGENT.md").write_text("a")
    for arguments in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(root), *arguments], check=True, timeout=30)
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    with prepare_import(root, [], tmp_path / "cache") as archive, tarfile.open(archive) as tar:
        names = [name.removeprefix("memory/.git/") for name in tar.getnames()]
    assert not [name for name in names if "hooks" in name or "config" in name or "logs" in name]
    (root / ".git/objects/info/alternates").write_text("/elsewhere\n")
    with pytest.raises(TrunklineError, match="is incomplete"), prepare_import(root, [], tmp_path / "cache"):
        pass


# The age format -------------------------------------------------------------------------------------------------


def locked(data: bytes, to: Recipients) -> bytes:
    target = io.BytesIO()
    encrypt(io.BytesIO(data), target, to)
    return target.getvalue()


def opened(data: bytes, keys: DecryptionKeys) -> bytes:
    target = io.BytesIO()
    decrypt(io.BytesIO(data), target, keys)
    return target.getvalue()


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_an_encrypted_archive_opens_with_other_programs(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every edge of the format's pieces; and we open what others lock."""
    monkeypatch.setattr(encryption, "SCRYPT_WORK", 10)
    data = os.urandom(size)
    made = locked(data, Recipients(passphrase="grün ☃"))
    assert pyrage.passphrase.decrypt(made, "grün ☃") == data
    assert opened(made, DecryptionKeys(passphrase="grün ☃")) == data


def test_a_changed_or_truncated_archive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any byte of it, its end, or more behind it: refused, with a sentence."""
    monkeypatch.setattr(encryption, "SCRYPT_WORK", 10)
    made = locked(b"x" * 70_000, Recipients(passphrase="p"))
    places = [*range(0, 220, 7), 65_000, len(made) - 1]
    bad = [made[:place] + bytes([made[place] ^ 1]) + made[place + 1 :] for place in places]
    bad += [made[:-1], made[:-17], made[: len(made) - 4_500], made + b"x", made[:150], b""]
    for one in bad:
        with pytest.raises(ArchiveEncryptionError):
            opened(one, DecryptionKeys(passphrase="p"))
    costly = made.replace(b" 10\n", b" 40\n", 1)
    with pytest.raises(ArchiveEncryptionError, match="too long"):
        opened(costly, DecryptionKeys(passphrase="p"))


# Archives of others that mean harm --------------------------------------------------------------------------------


def zipped(file: Path, name: str, data: bytes = b"x", *, link: bool = False) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = (0o120777 if link else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, data)
    return file


@pytest.mark.parametrize(
    "name", ["../out", "/out", "a/../../out", "..\\out", "C:/out", "a\x01b", "d/" * 100 + "x"]
)
def test_a_zip_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    """Nothing is written outside of the folder it is unpacked into."""
    (tmp_path / "in").mkdir()
    with pytest.raises(TrunklineError, match="an unsafe path"):
        extract_archive(zipped(tmp_path / "x.zip", name), tmp_path / "in")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "x.zip"]


def test_a_zip_of_links_bombs_or_noise_is_refused(tmp_path: Path) -> None:
    """The archive contains links, data that expands far beyond its limit, duplicates, a truncated member, an
    encrypted one, or noise."""
    cases = {
        "not a regular file": zipped(tmp_path / "link.zip", "passwd", b"/etc/passwd", link=True),
        "far more": zipped(tmp_path / "bomb.zip", "zeros", b"\0" * 90_000_000),
        "format of the archive is unknown": tmp_path / "noise.zip",
        "damaged": tmp_path / "cut.zip",
    }
    cases["format of the archive is unknown"].write_bytes(os.urandom(5_000))
    whole = zipped(tmp_path / "whole.zip", "data", os.urandom(50_000)).read_bytes()
    cases["damaged"].write_bytes(whole[:20_000] + b"\xff" * 100 + whole[20_100:])
    for number, (said, file) in enumerate(cases.items()):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(TrunklineError, match=said):
            extract_archive(file, tmp_path / str(number))
    (tmp_path / "twice").mkdir()
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a", "1")
        archive.writestr("a/b", "2")
    with pytest.raises(TrunklineError, match="cannot store together"):
        extract_archive(tmp_path / "twice.zip", tmp_path / "twice")
