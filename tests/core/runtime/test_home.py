"""The home folder and what can be wrong with it."""

import errno
import os
import stat
from pathlib import Path

import pytest
from workers_for_tests import config_at

from trunkline._util.private_folders import make_private
from trunkline.errors import StorageError
from trunkline.home.paths import Home, storage_errors


def test_folders_are_made_for_their_owner_only(tmp_path: Path) -> None:
    """Everything below the home is private from its creation."""
    home = Home.at(tmp_path / "home")
    home.prepare()
    made = [home.path, home.memory, home.workspaces, home.cache, home.bus, home.run, home.logs]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * len(made)


def test_parents_are_made_private_too(tmp_path: Path) -> None:
    """The first writer, such as a log, creates the home; no other user can read that home either."""
    make_private(tmp_path / "home" / "run" / "activity")
    made = [tmp_path / "home", tmp_path / "home" / "run", tmp_path / "home" / "run" / "activity"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * len(made)


def test_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Half a restore, an upload and a probe; nothing else."""
    home = Home.at(tmp_path / "home")
    home.prepare()
    (home.path / ".restore-x" / "memory").mkdir(parents=True)
    (home.cache / ".transfer-x").mkdir()
    (home.cache / ".transfer-x" / "report.pdf").write_text("x")
    (home.run / ".write-1").write_text("x")
    (home.path / "replaced-20300101T000000").mkdir()
    home.remove_leftovers()
    assert not (home.path / ".restore-x").exists() and not (home.run / ".write-1").exists()
    assert list(home.cache.iterdir()) == []
    assert (home.path / "replaced-20300101T000000").exists()


def test_memory_may_lie_elsewhere(tmp_path: Path) -> None:
    """runtime.memory_root and tools.workspaces are followed; relative ones are below the home."""
    config = config_at(
        tmp_path / "home", runtime__memory_root=str(tmp_path / "mine"), tools__workspaces="work"
    )
    home = Home.of(config)
    assert (home.memory, home.workspaces) == (tmp_path / "mine", tmp_path / "home" / "work")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """The sentence says which path, the hint what to do."""
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match=f"Cannot write to {tmp_path / 'home'}") as caught:
        Home.at(tmp_path / "home").prepare()
    assert "TRUNKLINE_HOME" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_operating_system_errors_are_put_into_words(tmp_path: Path, number: int, words: str) -> None:
    """A full disk, a read-only one and a forbidden one each have their words."""
    with pytest.raises(StorageError, match=words), storage_errors(tmp_path):
        raise OSError(number, os.strerror(number))
