"""Attempts to leave a folder: by the path's text, by links, by swapping links during an operation, by protected
names."""

import threading
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline._util.paths import MAX_NAME, MAX_PATH, PathRefused, check_path, open_beneath
from trunkline.testing.sandbox_isolation_suite import WITH_PASSWORD, bare_repository

SECRET = b"the secret outside"
SETTINGS = examples(300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folders(tmp_path):
    """A folder, and outside of it a secret; links inside lead out."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a/b").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    (root / "file").write_bytes(b"inside")
    (root / "out").symlink_to(outside)
    (root / "a/out").symlink_to("../../outside")
    (root / "leak").symlink_to(outside / "secret")
    (root / "dangling").symlink_to(outside / "new")
    (root / "self").symlink_to(".")
    return root


def snapshot(folder):
    return {child.name: child.read_bytes() for child in folder.iterdir() if child.is_file()}


def everything(folder, path):
    """Try every operation with the path; return the bytes that were read."""
    read = []
    for operation in (
        lambda: read.append(folder.read_bytes(path)),
        lambda: folder.append(path, b"evil"),
        lambda: folder.write_atomic(path, b"evil"),
        lambda: folder.mkdir(path),
        lambda: read.append(repr(folder.listdir(path)).encode()),
        lambda: folder.rename("file", path),
        lambda: folder.rename(path, "elsewhere"),
        lambda: folder.unlink(path),
        lambda: folder.rmdir(path),
        lambda: read.append(repr(list(folder.walk(path))).encode()),
    ):
        with suppress(PathRefused, OSError):
            operation()
    return read


PIECES = st.sampled_from(
    ["..", ".", "a", "b", "out", "leak", "dangling", "self", "secret", "file", "", "~", "~root", "\0", "outside",
     "‥", "．．", "..\\..", "%2e%2e", "..;", " ..", ".. ", "x" * 300]
)  # fmt: skip
PATHS = st.builds(
    lambda start, pieces: start + "/".join(pieces),
    st.sampled_from(["", "/", "//", "~/", "./"]),
    st.lists(PIECES, max_size=8),
)


@SETTINGS
@given(path=PATHS | st.text(max_size=60))
@example(path="../outside/secret")
@example(path="a/../../outside/secret")
@example(path="out/secret")
@example(path="self/self/out/secret")
@example(path="\ud800")
def test_no_path_leaves_the_root(folders, tmp_path, path):
    """For any path, nothing outside is read, written, created, moved or deleted."""
    before = snapshot(tmp_path / "outside")
    with open_beneath(folders) as folder:
        read = everything(folder, path)
    assert not any(SECRET in part for part in read)
    assert snapshot(tmp_path / "outside") == before
    assert sorted(child.name for child in tmp_path.iterdir()) == ["outside", "root"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../x", r"'\.\.'"),
        ("a/../../x", r"'\.\.'"),
        ("/etc/passwd", "absolute"),
        ("~/x", "'~'"),
        ("~root/x", "'~'"),
        ("a\0b", "NUL"),
        ("\udcff", "not valid text"),
        ("x" * (MAX_NAME + 1), "longer than 255"),
        ("é" * 128, "longer than 255"),
        ("a/" * (MAX_PATH // 2 + 1), "longer than 4096"),
        ("out/secret", "symbolic link"),
        ("leak", "symbolic link"),
        ("dangling", "symbolic link"),
        ("self/file", "symbolic link"),
    ],
)
def test_the_refusal_names_its_reason(folders, path, said):
    """A refusal says what about the path is not allowed."""
    with open_beneath(folders) as folder:
        for operation in (folder.read_bytes, lambda path: folder.write_atomic(path, b""), folder.unlink):
            with pytest.raises(PathRefused, match=said):
                operation(path)


def test_links_are_seen_but_not_followed(folders):
    """Listing and walking show links as links and do not go through them."""
    with open_beneath(folders) as folder:
        kinds = {entry.path: entry.kind for entry in folder.walk()}
    assert kinds["out"] == kinds["leak"] == kinds["a/out"] == "link"
    assert not any("secret" in path for path in kinds)


def test_swapping_a_folder_for_a_link_meanwhile(tmp_path):
    """A folder is swapped for a link to the outside as fast as possible: no operation ever lands outside."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (outside / "f").write_bytes(SECRET)
    (root / "real/f").write_bytes(b"inside")
    (root / "link").symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for name in ("real", "link"):
                (root / name).rename(root / "way")
                (root / "way").rename(root / name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        with open_beneath(root) as folder:
            for _ in range(1500):
                with suppress(PathRefused, FileNotFoundError, NotADirectoryError):
                    assert folder.read_bytes("way/f") != SECRET
                with suppress(PathRefused, FileNotFoundError, NotADirectoryError):
                    folder.append("way/g", b"x")
    finally:
        stop.set()
        swapper.join()
    assert snapshot(outside) == {"f": SECRET}


def test_swapping_a_file_for_a_link_meanwhile(tmp_path):
    """Likewise for the last name: the link's target is never read, written or emptied."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_bytes(SECRET)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (root / "l").symlink_to(outside)
            (root / "l").rename(root / "f")
            (root / "n").write_bytes(b"inside")
            (root / "n").rename(root / "f")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        with open_beneath(root) as folder:
            for _ in range(1500):
                with suppress(PathRefused, FileNotFoundError):
                    assert folder.read_bytes("f") != SECRET
                with suppress(PathRefused, FileNotFoundError):
                    folder.append("f", b"x")
                with suppress(PathRefused, FileNotFoundError):
                    folder.write_atomic("f", b"mine")
    finally:
        stop.set()
        swapper.join()
    assert outside.read_bytes() == SECRET


PROTECTED = [
    ".env",
    "auth.json",
    "id_rsa",
    "id_ed25519",
    ".git-credentials",
    ".netrc",
    ".ssh/config",
    ".aws/credentials",
    ".memoryblock/auth.json",
]


def disguised(path):
    """The path in other letters that a forgiving file system, or eye, takes for the same."""
    wide = "".join(chr(ord(sign) + 0xFEE0) if sign.isascii() and sign.isalnum() else sign for sign in path)
    return [
        path,
        path.upper(),
        path.title(),
        wide,
        path[:2] + "\u200b" + path[2:],
        path + ".",
        path + " ",
        f"./{path}/",
    ]


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.parametrize("before", ["", "x/", "x/y/", "my-"])
def test_protected_names(folders, path, before):
    """MB-T7: names where secrets are kept are refused in every folder, by every operation, in every disguise."""
    if before == "my-" and "/" in path:
        before = ""
    for name in disguised(path):
        with pytest.raises(PathRefused, match="protected"):
            check_path(before + name)
    with open_beneath(folders) as folder:
        for operation in (
            folder.read_bytes,
            folder.stat,
            lambda path: folder.write_atomic(path, b""),
            lambda path: folder.append(path, b""),
            lambda path: folder.rename("file", path),
            lambda path: folder.rename(path, "file"),
        ):
            with pytest.raises(PathRefused, match="protected"):
                operation(before + path)


@pytest.mark.parametrize("path", [".git", ".git/config", "x/.git/hooks/pre-commit"])
def test_no_operation_reaches_into_git(folders, path):
    """A hook or a setting of git is a program that runs later, outside every sandbox: no tool writes one."""
    for name in (
        path,
        path.upper(),
        f"./{path}/",
        path.replace(".git", ".g\u200bit"),
        path.replace(".git", ".git."),
    ):
        with pytest.raises(PathRefused, match="is a file of git"):
            check_path(name)
    with open_beneath(folders) as folder:
        for operation in (
            folder.stat,
            folder.mkdir,
            lambda path: folder.write_atomic(path, b""),
            lambda path: folder.append(path, b""),
            lambda path: folder.rename("a", path),
        ):
            with pytest.raises(PathRefused, match="is a file of git"):
                operation(path)
    assert not (folders / ".git").exists()


def test_bare_repositories_are_not_changed(folders):
    """Only a push changes a bare repository; no operation does, at any depth; it can be read."""
    remote = folders / "a/remote"
    bare_repository(remote)
    before = snapshot(remote), snapshot(remote / "refs/heads")
    with open_beneath(folders) as folder:
        for path in ("a/remote/refs/heads/main", "a/remote/config", "a/remote/new", "a/remote/hooks/update"):
            for operation in (
                lambda path: folder.write_atomic(path, b""),
                lambda path: folder.append(path, b""),
                lambda path: folder.rename("file", path),
                lambda path: folder.rename(path, "x"),
                folder.unlink,
                folder.rmdir,
                folder.mkdir,
            ):
                with pytest.raises(PathRefused, match="bare git repository"):
                    operation(path)
        with pytest.raises(PathRefused, match="bare git repository"):
            folder.rename("a/remote", "x")
        assert folder.read_bytes("a/remote/refs/heads/main") == b"0123\n"
        assert (snapshot(remote), snapshot(remote / "refs/heads")) == before
        (remote / "worktrees/x").mkdir(parents=True)
        folder.append("a/remote/new", b"a commit in a worktree changes it")


def test_settings_of_git_with_a_password_are_closed(folders):
    """Neither read nor moved to where they could be."""
    for name in ("config", ".gitconfig", "config.worktree"):
        (folders / name).write_text(WITH_PASSWORD[0])
        with open_beneath(folders) as folder:
            for operation in (folder.read_bytes, lambda path: folder.rename(path, "x")):
                with pytest.raises(PathRefused, match="a password"):
                    operation(name)


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        ".github/x.yml",
        "git/x",
        ".environment",
        "auth.json.md",
        "id_rsa.pub",
        ".ssh/known_hosts",
        "config",
        "env",
    ],
)
def test_names_similar_to_protected_ones_are_allowed(path):
    """Only protected names are refused."""
    assert check_path(path) == path


def test_moving_a_folder_does_not_expose_its_protected_file(folders):
    """``.ssh/config`` is known by its folder, so the folder cannot be renamed, nor anything put in its place."""
    (folders / ".ssh").mkdir()
    (folders / ".ssh/config").write_bytes(SECRET)
    with open_beneath(folders) as folder:
        for source, target in ((".ssh", "plain"), (".SSH", "plain"), ("a", ".ssh")):
            with pytest.raises(PathRefused, match="protected folder"):
                folder.rename(source, target)


@SETTINGS
@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_ordinary_names_work(tmp_path_factory, name):
    """A file under any accepted path is written and read back under it, below the folder."""
    root = tmp_path_factory.mktemp("names")
    with open_beneath(root) as folder:
        try:
            plain = check_path(name)
        except PathRefused:
            return
        if not plain:
            return
        if "/" in plain:
            folder.mkdir(plain.rpartition("/")[0])
        folder.write_atomic(name, name.encode())
        assert folder.read_bytes(name) == name.encode()
        files = [entry.path for entry in folder.walk() if entry.kind == "file"]
        assert [unicodedata.normalize("NFC", file) for file in files] == [unicodedata.normalize("NFC", plain)]
