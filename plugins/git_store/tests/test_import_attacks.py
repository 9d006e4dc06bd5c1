"""Archives that mean harm, or that were harmed: each is refused with a sentence, and memory is as it was."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pygit2
import pytest

from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline.contracts.memory.transfer import ImportMemory, MemoryImport
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]
Harm = Callable[[Path], None]


@pytest.fixture
async def good(opened: Opened, tmp_path: Path) -> Path:
    """An archive of another memory, as it should be."""
    async with opened(tmp_path / "other") as other:
        for number in range(3):
            await other.change(Change({"notes.md": f"{number}".encode()}, actor="agent", reason=""))
        await other.export(tmp_path / "good.tar")
    return tmp_path / "good.tar"


async def bring(store: GitMemoryStore, archive: Path, tmp_path: Path) -> MemoryImport:
    copy = tmp_path / "coming.tar"
    shutil.copyfile(archive, copy)
    request = ImportMemory(object="x", actor="owner", settings=True)
    return await store.import_archive(copy, request, lambda progress: None)


async def refused(store: GitMemoryStore, archive: Path, tmp_path: Path, root: Path) -> str:
    """Return the sentence with which the archive is refused; memory is unchanged byte for byte."""
    before = everything(root)
    with pytest.raises(Refusal) as caught:
        await bring(store, archive, tmp_path)
    assert not any(".import-" in name for name in names_in(tmp_path))
    assert caught.value.code == "bad_archive" and everything(root) == before
    return caught.value.message


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def bytes_of(file: Path) -> bytes:
    return file.read_bytes()


def everything(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def repacked(good: Path, harm: Harm) -> Path:
    """Return the archive with damage and matching checksums, as an informed attacker would make it."""
    folder, target = good.with_name("harmed"), good.with_name("harmed.tar")
    folder.mkdir()
    subprocess.run(["tar", "-xf", str(good), "-C", str(folder)], check=True, timeout=30)
    harm(folder)
    files = [file for file in folder.rglob("*") if file.is_file() or file.is_symlink()]
    names = [
        str(file.relative_to(folder)) for file in files if file.name not in ("SHA256SUMS", "manifest.json")
    ]
    names = ["manifest.json", *sorted(names)]
    plain = [name for name in names if not (folder / name).is_symlink()]
    sums = subprocess.run(["sha256sum", *plain], cwd=folder, check=True, capture_output=True, timeout=30)
    (folder / "SHA256SUMS").write_bytes(sums.stdout)
    with tarfile.open(target, "w") as tar:
        for name in [*names, "SHA256SUMS"]:
            tar.add(folder / name, name)
    return target


def repository(folder: Path) -> pygit2.Repository:
    return pygit2.Repository(str(folder / "memory"))


def commit(folder: Path, tree: pygit2.Oid | str) -> None:
    """Let the history in the archive, and its manifest, end with a commit of this tree."""
    git = repository(folder)
    who = pygit2.Signature("mallory", "m@x")
    git.config["core.logAllRefUpdates"] = False
    head = git.create_commit("HEAD", who, who, "harm", pygit2.Oid(hex=str(tree)), [git.head.target])
    (folder / "manifest.json").write_text(
        json.dumps({**json.loads((folder / "manifest.json").read_text()), "head": str(head)})
    )


def tree_of(folder: Path, *items: tuple[str, str, str]) -> str:
    """A folder's object, written without git's own care for what may be in it."""
    data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in items)
    command = [
        "git",
        "-C",
        str(folder / "memory"),
        "hash-object",
        "-t",
        "tree",
        "-w",
        "--literally",
        "--stdin",
    ]
    return (
        subprocess.run(command, input=data, check=True, capture_output=True, timeout=30)
        .stdout.decode()
        .strip()
    )


def nested(folder: Path, levels: int) -> pygit2.Oid:
    """A folder in a folder in a folder..., with a file in the innermost."""
    git = repository(folder)
    inner, item = git.create_blob(b"deep"), b"100644 a.md"
    for _ in range(levels):
        inner, item = git.write(pygit2.enums.ObjectType.TREE, item + b"\0" + inner.raw), b"40000 a"
    return inner


async def test_folders_nested_deep_stay_in_history(
    store: GitMemoryStore, good: Path, tmp_path: Path, git: Git
) -> None:
    """A file committed by a person below memory's depth limit is reported and kept in history; every other file is
    imported, and memory continues to write, export and check."""
    deep = repacked(good, lambda folder: commit(folder, nested(folder, 1_500)))
    done = await bring(store, deep, tmp_path)
    assert any("a memory file cannot have that name" in gap.why for gap in done.gaps)
    await store.change(Change({"b.md": b"b"}, actor="agent", reason=""))
    await store.export(tmp_path / "again.tar")
    assert {finding.status for finding in await store.check(repair=False)} == {"ok"}
    assert (await store.search(SearchMemory(query="deep"))) == ()
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_folders_nested_without_end_are_refused(
    store: GitMemoryStore, good: Path, tmp_path: Path, root: Path
) -> None:
    def at_once(folder: Path) -> None:
        commit(folder, nested(folder, 5_000))

    assert "nested more than" in await refused(store, repacked(good, at_once), tmp_path, root)


async def test_folders_nested_deeper_with_each_commit_are_refused(
    store: GitMemoryStore, good: Path, tmp_path: Path, root: Path
) -> None:
    def bit_by_bit(folder: Path) -> None:
        for levels in (1_000, 2_000, 2_900):
            commit(folder, nested(folder, levels))

    assert "nested more than" in await refused(store, repacked(good, bit_by_bit), tmp_path, root)


def blob(folder: Path, text: bytes = b"harm") -> str:
    return str(repository(folder).create_blob(text))


def a_hook(folder: Path) -> None:
    hook = folder / "memory/.git/hooks/post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\ntouch /tmp/harm\n")
    hook.chmod(0o755)


def borrowed_objects(folder: Path) -> None:
    (folder / "memory/.git/objects/info").mkdir(parents=True, exist_ok=True)
    (folder / "memory/.git/objects/info/alternates").write_text("/etc\n")


def attributes(folder: Path) -> None:
    (folder / "memory/.git/info").mkdir()
    (folder / "memory/.git/info/attributes").write_text("* filter=harm\n")


def a_submodule(folder: Path) -> None:
    (folder / "memory/.git/modules/x").mkdir(parents=True)
    (folder / "memory/.git/modules/x/config").write_text("")


def a_link(folder: Path) -> None:
    (folder / "memory/passwd").symlink_to("/etc/passwd")


def a_link_in_history(folder: Path) -> None:
    commit(folder, tree_of(folder, ("120000", "passwd", blob(folder, b"/etc/passwd"))))


def a_submodule_in_history(folder: Path) -> None:
    commit(folder, tree_of(folder, ("160000", "sub", "1" * 40)))


def a_link_for_gits_file(folder: Path) -> None:
    commit(folder, tree_of(folder, ("120000", ".gitmodules", blob(folder, b"/etc/passwd"))))


def git_in_history(folder: Path) -> None:
    commit(
        folder, tree_of(folder, ("40000", ".g\u200cIT", tree_of(folder, ("100755", "hooks", blob(folder)))))
    )


def dots_in_history(folder: Path) -> None:
    commit(folder, tree_of(folder, ("100644", "..", blob(folder))))


def twice_in_history(folder: Path) -> None:
    commit(folder, tree_of(folder, ("100644", "a", blob(folder)), ("100644", "a", blob(folder, b"2"))))


def a_missing_object(folder: Path) -> None:
    commit(folder, tree_of(folder, ("100644", "a", "2" * 40)))


def an_index_of_another_program(folder: Path) -> None:
    """The index of the pack says other places than the pack has."""
    (index,) = (folder / "memory/.git/objects/pack").glob("*.idx")
    data = bytearray(index.read_bytes())
    count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
    start = 8 + 256 * 4 + count * 24
    places = [data[start + 4 * one : start + 4 * one + 4] for one in range(count)]
    data[start : start + 4 * count] = b"".join([*places[1:], places[0]])
    index.chmod(0o644)
    index.write_bytes(data)


def a_broken_pack(folder: Path) -> None:
    (pack,) = (folder / "memory/.git/objects/pack").glob("*.pack")
    data = bytearray(pack.read_bytes())
    for place in range(16, len(data), 16):
        data[place] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)


def no_history(folder: Path) -> None:
    (folder / "manifest.json").write_text(
        json.dumps({**json.loads((folder / "manifest.json").read_text()), "head": ""})
    )


def another_head(folder: Path) -> None:
    (folder / "manifest.json").write_text(
        json.dumps({**json.loads((folder / "manifest.json").read_text()), "head": "1" * 40})
    )


def a_newer_form(folder: Path) -> None:
    (folder / "manifest.json").write_text(
        json.dumps({**json.loads((folder / "manifest.json").read_text()), "schema": 99, "version": "9.9"})
    )


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (a_hook, "hooks/post-checkout"),
        (borrowed_objects, "alternates"),
        (attributes, "info/attributes"),
        (a_submodule, "modules/x"),
        (a_link, "not a regular file"),
        (a_link_for_gits_file, "a link in place"),
        (git_in_history, "not a valid name"),
        (dots_in_history, "not a valid name"),
        (twice_in_history, "damaged"),
        (a_missing_object, "damaged"),
        (an_index_of_another_program, "damaged"),
        (a_broken_pack, "damaged"),
        (no_history, "no history"),
        (another_head, "does not end at the commit"),
        (a_newer_form, "newer"),
    ],
)
async def test_a_hostile_archive_is_refused(
    harm: Harm, said: str, good: Path, store: GitMemoryStore, tmp_path: Path, root: Path
) -> None:
    """The checksums match; one sentence names the fault, before memory is changed."""
    assert said in await refused(store, repacked(good, harm), tmp_path, root)


@pytest.mark.parametrize(("harm", "name"), [(a_link_in_history, "passwd"), (a_submodule_in_history, "sub")])
async def test_a_link_or_submodule_of_an_archive_stays_in_history(
    harm: Harm, name: str, good: Path, store: GitMemoryStore, tmp_path: Path, root: Path, git: Git
) -> None:
    """It never becomes a file, a link or a folder of this memory, nor part of its newest commit."""
    await bring(store, repacked(good, harm), tmp_path)
    assert name not in names_in(root)
    assert name not in git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_configuration_and_attributes_of_an_archive_are_ignored(
    good: Path, store: GitMemoryStore, tmp_path: Path, root: Path, git: Git
) -> None:
    """A configuration that would run programs is never read or kept; a ``.gitattributes`` is no file of memory."""

    def harm(folder: Path) -> None:
        config = folder / "memory/.git/config"
        config.write_text(
            config.read_text() + f'\tfsmonitor = touch {tmp_path}/harm\n[filter "x"]\n\tsmudge = false\n'
        )
        commit(
            folder,
            tree_of(
                folder,
                ("100644", ".gitattributes", blob(folder, b"* filter=x\n")),
                ("100644", "a.md", blob(folder, b"a")),
            ),
        )

    before = (root / ".git/config").read_bytes()
    done = await bring(store, repacked(good, harm), tmp_path)
    assert (root / ".git/config").read_bytes() == before and not (tmp_path / "harm").exists()
    assert not (root / ".gitattributes").exists() and (root / "a.md").read_text() == "a"
    assert ".gitattributes" in [gap.what for gap in done.gaps]
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_a_truncated_archive_is_refused(
    good: Path, store: GitMemoryStore, tmp_path: Path, root: Path
) -> None:
    """Wherever it was cut: in a file, between two, before the sums."""
    data = bytes_of(good)
    with tarfile.open(good) as tar:
        edges = [member.offset for member in tar]
    for cut in [*edges[1:], *range(1_000, len(data) - 12_000, len(data) // 12)]:
        (tmp_path / "cut.tar").write_bytes(data[:cut])
        await refused(store, tmp_path / "cut.tar", tmp_path, root)


async def test_a_changed_byte_is_found(good: Path, store: GitMemoryStore, tmp_path: Path, root: Path) -> None:
    """The sums say what every file was when the archive was made."""
    with tarfile.open(good) as tar:
        members = [member for member in tar if member.size and member.name != "manifest.json"]
    for member in members:
        data = bytearray(bytes_of(good))
        data[member.offset_data + member.size // 2] ^= 1
        (tmp_path / "bad.tar").write_bytes(data)
        await refused(store, tmp_path / "bad.tar", tmp_path, root)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../out", tarfile.REGTYPE),
        ("/out-of-it", tarfile.REGTYPE),
        ("memory/../../out", tarfile.REGTYPE),
        ("memory/a\nb", tarfile.REGTYPE),
        ("memory/" + "x" * 300, tarfile.REGTYPE),
        ("memory/" + "d/" * 100 + "x", tarfile.REGTYPE),
        ("memory/link", tarfile.SYMTYPE),
        ("memory/link", tarfile.LNKTYPE),
        ("memory/pipe", tarfile.FIFOTYPE),
        ("memory/device", tarfile.CHRTYPE),
        ("README.txt", tarfile.REGTYPE),
        ("elsewhere/x", tarfile.REGTYPE),
    ],
)
async def test_a_member_that_no_export_has_is_refused(
    name: str, kind: bytes, good: Path, store: GitMemoryStore, tmp_path: Path, root: Path
) -> None:
    """Paths that lead out, links, devices, pipes, names too long, duplicates: nothing is written."""
    with tarfile.open(good) as tar, tarfile.open(tmp_path / "evil.tar", "w") as evil:
        for member in tar:
            if member.name == "SHA256SUMS":
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, "/etc/passwd", 4 if kind == tarfile.REGTYPE else 0
                evil.addfile(info, io.BytesIO(b"harm"))
            evil.addfile(member, tar.extractfile(member))
    await refused(store, tmp_path / "evil.tar", tmp_path, root)
    assert not (tmp_path.parent / "out").exists()


async def test_a_file_of_holes_is_refused(
    good: Path, store: GitMemoryStore, tmp_path: Path, root: Path
) -> None:
    """A member that says it is a terabyte of nothing takes no disk."""
    write_holes(tmp_path)
    with tarfile.open(good) as tar, tarfile.open(tmp_path / "front.tar", "w") as front:
        first = tar.next()
        assert first is not None
        front.addfile(first, tar.extractfile(first))
    together = (tmp_path / "front.tar").read_bytes().rstrip(b"\0")
    together += b"\0" * (-len(together) % 512) + (tmp_path / "evil.tar").read_bytes()
    (tmp_path / "holes.tar").write_bytes(together)
    assert "not a regular file" in await refused(store, tmp_path / "holes.tar", tmp_path, root)


def write_holes(folder: Path) -> None:
    """evil.tar, with a member of a terabyte that takes a few bytes."""
    with (folder / "holes").open("wb") as file:
        file.truncate(1 << 40)
    options = ["--sparse", "--format=gnu", "--transform=s,holes,memory/holes,"]
    subprocess.run(["tar", *options, "-cf", "evil.tar", "holes"], cwd=folder, check=True, timeout=60)


async def test_a_file_that_is_not_an_archive_is_refused(
    store: GitMemoryStore, tmp_path: Path, root: Path
) -> None:
    """The cases are an empty file, noise, text, another tar file, and a compressed one."""
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("a"))
    for data in (b"", os.urandom(5_000), b"hello", b"\0" * 10_240, (tmp_path / "other.tar.gz").read_bytes()):
        (tmp_path / "noise.tar").write_bytes(data)
        await refused(store, tmp_path / "noise.tar", tmp_path, root)
