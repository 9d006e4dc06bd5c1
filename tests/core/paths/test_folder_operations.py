"""The operations of a folder that is held by its handle."""

import errno
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from trunkline._util.paths import PathRefused, check_path, open_beneath
from trunkline.errors import ToolError


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(root):
    with open_beneath(root) as held:
        yield held


def test_write_then_read(folder, root):
    """The written bytes are read back, and the folder has no other file."""
    folder.write_atomic("a.txt", b"one")
    folder.write_atomic("a.txt", b"two")
    assert folder.read_bytes("a.txt") == folder.read_bytes("./a.txt") == b"two"
    assert folder.read_bytes("a.txt", limit=2) == b"tw"
    assert [child.name for child in root.iterdir()] == ["a.txt"]


def test_permissions_stay_when_a_file_is_replaced(folder, root):
    """A replaced file keeps its mode."""
    (root / "run.sh").write_text("x")
    (root / "run.sh").chmod(0o750)
    folder.write_atomic("run.sh", b"y")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750


def test_a_write_that_fails_leaves_the_old_file(folder, root, monkeypatch):
    """A full disk costs the new content and never the old; no remains lie about; the error names the path."""
    folder.write_atomic("a.txt", b"old")

    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match=r"No space left on device: 'a\.txt'"):
        folder.write_atomic("a.txt", b"new")
    assert folder.read_bytes("a.txt") == b"old"
    assert [child.name for child in root.iterdir()] == ["a.txt"]


def test_append_makes_the_file_and_adds(folder):
    """Appending makes a file that is absent."""
    folder.append("log", b"1\n")
    folder.append("log", b"2\n")
    assert folder.read_bytes("log") == b"1\n2\n"


def test_folders(folder, root):
    """Folders are made with those on the way, listed by name, walked to a depth, and removed when empty."""
    folder.mkdir("a/b/c")
    folder.mkdir("a/b/c")
    folder.write_atomic("a/b/x.txt", b"hello")
    assert [(entry.path, entry.kind, entry.size) for entry in folder.listdir("a/b")][1] == (
        "a/b/x.txt",
        "file",
        5,
    )
    assert [entry.path for entry in folder.walk()] == ["a", "a/b", "a/b/c", "a/b/x.txt"]
    assert [entry.path for entry in folder.walk(depth=1)] == ["a"]
    folder.rmdir("a/b/c")
    with pytest.raises(OSError, match="not empty"):
        folder.rmdir("a/b")
    with pytest.raises(FileNotFoundError):
        folder.mkdir("no/parent", parents=False)
    assert folder.stat("").kind == "folder"
    assert folder.stat("a/b/x.txt").modified_at.tzinfo is not None
    assert folder.exists("a/b") and not folder.exists("a/z") and not folder.exists("a/b/x.txt/y")


def test_a_file_in_the_way_of_a_folder(folder):
    """Making a folder where a file is fails by the system's own error, with the path."""
    folder.write_atomic("a", b"")
    for path in ("a", "a/b"):
        with pytest.raises(NotADirectoryError) as caught:
            folder.mkdir(path)
        assert caught.value.filename == path


def test_rename_and_unlink(folder):
    """Moving replaces a file and takes folders along; deleting deletes."""
    folder.mkdir("a")
    folder.write_atomic("a/x", b"1")
    folder.write_atomic("y", b"2")
    folder.rename("y", "a/x")
    assert folder.read_bytes("a/x") == b"2"
    folder.rename("a", "b")
    assert folder.read_bytes("b/x") == b"2"
    folder.unlink("b/x")
    assert not folder.exists("b/x")


def test_errors_carry_the_path_as_it_was_given(folder):
    """An error names the whole path, so a model or person can identify it."""
    for operation in (folder.read_bytes, folder.unlink, folder.listdir, folder.stat, folder.rmdir):
        with pytest.raises(FileNotFoundError) as caught:
            operation("no/such")
        assert caught.value.filename == "no/such"
    with pytest.raises(FileNotFoundError):
        folder.write_atomic("no/such", b"")


def test_an_error_inside_the_context_is_not_attributed_to_the_path(folder):
    """An exception while a file is open is not reported as a fault of the path."""
    folder.write_atomic("a", b"")
    with pytest.raises(OSError, match="elsewhere") as caught, folder.open_read("a"):
        raise OSError(errno.EIO, "elsewhere")
    assert caught.value.filename is None


def test_the_root_folder_is_not_a_file(folder):
    """The folder can be listed but not read, written, moved or deleted."""
    for operation in (
        folder.read_bytes,
        folder.unlink,
        folder.rmdir,
        lambda path: folder.write_atomic(path, b""),
    ):
        for path in ("", ".", "./"):
            with pytest.raises(PathRefused, match="workspace itself"):
                operation(path)


def test_special_files_are_not_opened(folder, root):
    """Pipes and folders are refused at once; a pipe with no other end does not hang."""
    os.mkfifo(root / "pipe")
    (root / "d").mkdir()
    for path in ("pipe", "d"):
        with pytest.raises((PathRefused, IsADirectoryError)):
            folder.read_bytes(path)
        with pytest.raises((PathRefused, IsADirectoryError)):
            folder.append(path, b"x")
        with pytest.raises(PathRefused):
            folder.write_atomic(path, b"x")
    assert [entry.kind for entry in folder.listdir()] == ["folder", "other"]


def test_undecodable_names_are_shown(folder, root):
    """A name that is not UTF-8 is listed in a readable form and breaks nothing."""
    try:
        (root / os.fsdecode(b"bad\xff")).mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert [entry.path for entry in folder.walk()] == ["bad\\xff"]


def test_no_handles_are_leaked(folder, root):
    """Every handle is closed again, after success and failure."""
    (root / "link").symlink_to("/etc")
    folder.mkdir("a/b")

    def handles():
        return len(list(Path("/dev/fd").iterdir()))

    before = handles()
    for path in ("a/b/x", "link/x", "no/such", "../x", "a", ""):
        for operation in (
            folder.read_bytes, folder.listdir, folder.stat, folder.unlink, folder.mkdir,
            lambda path: folder.write_atomic(path, b"x"), lambda path: folder.append(path, b"x"),
            lambda path: folder.rename(path, "a/z"), lambda path: list(folder.walk(path)),
        ):  # fmt: skip
            with suppress(PathRefused, OSError):
                operation(path)
    assert handles() == before


def test_two_writers_never_mix(folder):
    """Readers see one writer's whole content or the other's, never a part."""
    folder.write_atomic("f", b"a" * 10_000)
    stop = threading.Event()

    def write(letter):
        while not stop.is_set():
            folder.write_atomic("f", letter * 10_000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for writer in writers:
        writer.start()
    try:
        seen = {folder.read_bytes("f") for _ in range(200)}
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert seen <= {b"a" * 10_000, b"b" * 10_000}


def test_a_refusal_is_a_tool_error():
    """The text of a refusal goes to the model as it is, and says what would do."""
    assert issubclass(PathRefused, ToolError)
    with pytest.raises(PathRefused, match="relative to the workspace"):
        check_path("/etc/passwd")
    assert check_path("./a//b/") == "a/b"


def test_a_root_that_is_not_there(tmp_path):
    """Holding a folder that is absent fails at once."""
    with pytest.raises(FileNotFoundError), open_beneath(tmp_path / "none"):
        pass
