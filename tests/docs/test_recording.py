"""The recording at the top of the README can be made again: its story is played, and the program behaves as
described."""

import os
import subprocess
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tests.support.tmux import MISSING

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes to kill in /proc")
def test_the_story_of_the_readme_is_played(tmp_path: Path) -> None:
    """The story has an answer from memory, a question before a write, a kill in the middle of an answer that
    continues after it, and blame. The picture runs no script, loads nothing and is small."""
    target = tmp_path / "recording.svg"
    done = subprocess.run(
        [sys.executable, "-m", "recording", str(target)],
        cwd=DOCS, env={**os.environ, "PYTHONPATH": str(DOCS.parent)},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    picture = target.read_text()
    assert (
        len(picture) < 400_000
        and "<script" not in picture
        and "http" not in picture.replace("http://www.w3", "")
    )
    Xml.fromstring(picture)


def test_the_pictures_of_the_readme_are_here() -> None:
    """The files exist, and are pictures."""
    for name in ("overview.svg", "recording.svg"):
        assert Xml.parse(DOCS / "images" / name).getroot().tag.endswith("svg")
