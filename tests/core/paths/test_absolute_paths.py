"""Absolute paths: their reach, with links resolved, and the paths closed under every name."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline._util.paths import PathRefused, PathScope, open_beneath, real_path


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """``ws/main`` is the block, ``ws/other`` another's, ``far`` lies outside, ``far/home`` is closed; links between."""
    for folder in ("ws/main", "ws/other", "far/home/keys", "far/sub"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("ws/main/mine", "ws/other/theirs", "far/open", "far/home/keys/token", "far/.env"):
        (tmp_path / file).write_text(file)
    (tmp_path / "ws/other/out").symlink_to(tmp_path / "far")
    (tmp_path / "ws/other/leak").symlink_to(tmp_path / "far/open")
    (tmp_path / "ws/back").symlink_to(tmp_path / "ws/other")
    (tmp_path / "far/alias").symlink_to(tmp_path / "far/home")
    (tmp_path / "far/secret").symlink_to(tmp_path / "far/.env")
    return tmp_path


def workspaces(folders: Path) -> PathScope:
    return PathScope((folders / "ws",), (folders / "far/home",))


def anywhere(folders: Path) -> PathScope:
    return PathScope((folders / "ws", Path("/")), (folders / "far/home",))


def test_a_relative_path_stays_in_the_block_in_every_scope(folders: Path) -> None:
    """The block's folder is the only place of a relative path."""
    with open_beneath(folders / "ws/main", anywhere(folders)) as folder:
        assert folder.read_bytes("mine") == b"ws/main/mine"
        with pytest.raises(PathRefused):
            folder.read_bytes("../other/theirs")


def test_absolute_paths_lead_to_the_roots_and_no_further(folders: Path) -> None:
    """Links and ``..`` are resolved first, and what comes of it must lie below a root."""
    with open_beneath(folders / "ws/main", workspaces(folders)) as folder:
        assert folder.read_bytes(f"{folders}/ws/other/theirs") == b"ws/other/theirs"
        assert folder.read_bytes(f"{folders}/ws/main/../other/theirs") == b"ws/other/theirs"
        assert folder.read_bytes(f"{folders}/ws/back/theirs") == b"ws/other/theirs"
        for path in ("far/open", "ws/other/out/open", "ws/other/leak", "ws/../far/open", "ws/back/out/open"):
            with pytest.raises(PathRefused, match="outside of the folders that this block may use"):
                folder.read_bytes(f"{folders}/{path}")
            with pytest.raises(PathRefused):
                folder.write_atomic(f"{folders}/{path}", b"evil")
        with pytest.raises(PathRefused):
            folder.rename(f"{folders}/ws/other/theirs", f"{folders}/far/stolen")
    assert (folders / "far/open").read_text() == "far/open"


def test_every_operation_takes_absolute_paths(folders: Path) -> None:
    """Reading, writing, moving, deleting, listing; entries carry the paths under which they are found again."""
    with open_beneath(folders / "ws/main", workspaces(folders)) as folder:
        place = f"{folders}/ws/other"
        folder.mkdir(f"{place}/new/deep")
        folder.write_atomic(f"{place}/new/a", b"a")
        folder.append(f"{place}/new/a", b"b")
        folder.rename(f"{place}/new/a", "here")
        assert folder.read_bytes("here") == b"ab"
        assert [entry.path for entry in folder.walk(f"{place}/new")] == [
            f"{os.path.realpath(place)}/new/deep"
        ]
        folder.rmdir(f"{place}/new/deep")
        assert folder.stat(f"{place}/theirs").kind == "file"
        assert not folder.exists(f"{place}/new/deep")
        folder.unlink(f"{place}/theirs")
        with pytest.raises(PathRefused, match="symbolic link"):
            folder.unlink(f"{place}/leak")


@pytest.mark.parametrize(
    "path", ["far/home/keys/token", "far/alias/keys/token", "far/sub/../home/keys/token", "far/home"]
)
def test_a_closed_path_is_closed_under_every_name(folders: Path, path: str) -> None:
    """Known by its identity: through links, and after it was moved."""
    with open_beneath(folders / "ws/main", anywhere(folders)) as folder:
        for operation in (
            folder.read_bytes,
            folder.unlink,
            folder.listdir,
            lambda one: folder.rename(one, "mine2"),
        ):
            with pytest.raises((PathRefused, OSError)):
                operation(f"{folders}/{path}")
        with pytest.raises(PathRefused):
            folder.rename(f"{folders}/far", f"{folders}/moved")
    reach = PathScope((Path("/"),), (folders / "absent",))
    with (
        open_beneath(folders / "ws/main", reach) as folder,
        pytest.raises(PathRefused, match="no agent may use"),
    ):
        folder.mkdir(f"{folders}/absent/x")
    (folders / "far/home").rename(folders / "far/elsewhere")
    reach = PathScope((Path("/"),), (folders / "far/elsewhere",))
    with (
        open_beneath(folders / "ws/main", reach) as folder,
        pytest.raises(PathRefused, match="no agent may use"),
    ):
        folder.read_bytes(f"{folders}/far/elsewhere/keys/token")
    assert (folders / "far/elsewhere/keys/token").read_text() == "far/home/keys/token"


@pytest.mark.parametrize(
    "path", ["far/.env", "far/secret", "far/x/id_rsa", "far/.ssh/config", "far/auth.json", "far/.git/config"]
)
def test_protected_names_are_protected_everywhere(folders: Path, path: str) -> None:
    """MB-T7: in every scope, also through a link whose own name is innocent."""
    with open_beneath(folders / "ws/main", anywhere(folders)) as folder:
        for operation in (folder.read_bytes, lambda one: folder.write_atomic(one, b"evil"), folder.stat):
            with pytest.raises(PathRefused):
                operation(f"{folders}/{path}")


def test_only_the_owners_home_is_expanded(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``~/`` is resolved like any absolute path, and no other user's home is."""
    monkeypatch.setenv("HOME", str(folders / "far"))
    with open_beneath(folders / "ws/main", anywhere(folders)) as folder:
        assert folder.read_bytes("~/open") == b"far/open"
        with pytest.raises(PathRefused, match="another person"):
            folder.read_bytes("~root/x")
    with open_beneath(folders / "ws/main", workspaces(folders)) as folder, pytest.raises(PathRefused):
        folder.read_bytes("~/open")


PIECES = st.sampled_from(
    [
        "..",
        ".",
        "ws",
        "main",
        "other",
        "far",
        "home",
        "keys",
        "token",
        "open",
        "out",
        "leak",
        "back",
        "alias",
        ".env",
        "",
    ]
)


@examples(300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from(["", "ws/", "ws/main/"]), pieces=st.lists(PIECES, max_size=8))
def test_no_absolute_path_leads_out_of_its_root(folders: Path, start: str, pieces: list[str]) -> None:
    """For any path, a file read with the reach of workspaces really lies in them."""
    path = f"{folders}/{start}{'/'.join(pieces)}"
    with open_beneath(folders / "ws/main", workspaces(folders)) as folder:
        with suppress(PathRefused, OSError):
            assert folder.read_bytes(path).decode().startswith("ws/")
        with suppress(PathRefused, OSError):
            folder.append(path + "/evil", b"evil")
        with suppress(PathRefused, OSError):
            folder.mkdir(path + "/made")
    assert sorted(os.listdir(folders / "far")) == [".env", "alias", "home", "open", "secret", "sub"]  # noqa: PTH208


def test_a_link_that_is_swapped_in_leads_nowhere(folders: Path) -> None:
    """A folder is swapped for a link to the outside as fast as possible: no read ever lands outside."""
    swapped, stop = folders / "ws/other/swap", threading.Event()
    (folders / "ws/other/real").mkdir()
    (folders / "ws/other/real/open").write_text("ws/real")

    def swap() -> None:
        while not stop.is_set():
            for target in (folders / "ws/other/real", folders / "far"):
                new = folders / "ws/other/.new"
                new.symlink_to(target)
                new.replace(swapped)

    thread = threading.Thread(target=swap)
    thread.start()
    read = set()
    try:
        with open_beneath(folders / "ws/main", workspaces(folders)) as folder:
            for _ in range(1000):
                with suppress(PathRefused, OSError):
                    read.add(folder.read_bytes(f"{swapped}/open"))
    finally:
        stop.set()
        thread.join()
    assert read <= {b"ws/real"}


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800", "/" + "x" * 5000, "/" + "y" * 300, "~other"])
def test_an_invalid_path_is_refused(path: str) -> None:
    """The error is a ToolError, for any operation."""
    with pytest.raises(PathRefused):
        real_path(path)
