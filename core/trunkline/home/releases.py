"""The releases of Trunkline that ``trunkline update`` installed for a home, and the one in use. Installs nothing.
::
    releases/<version>/  releases/in-use.json  releases/before-<version>.tar

``in-use.json`` alone decides which release runs. It is replaced in one step, so a process that is killed leaves the one
or the other release in use, and both are complete.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER, IN_USE = "releases", "in-use.json"

STAY = "TRUNKLINE_STAY"
"""The variable whose value 1 makes a process run its own release, whatever the home says. A process that has become
another release sets its own process id, so that it never does so twice; its children may.
"""


@dataclass(frozen=True, slots=True)
class Release:
    """An installed release. ``format`` is the format of the home when the release was last in use."""

    version: str
    python: str
    format: int


@dataclass(frozen=True, slots=True)
class ReleaseInUse:
    """The release that runs, the one before it, and the Python of the first installation, which services start and
    which becomes the release in use.
    """

    release: Release
    before: Release
    launcher: str


def releases_folder(home: Path) -> Path:
    """Return the folder of a home's releases."""
    return home / FOLDER


def read_release_in_use(home: Path) -> ReleaseInUse | None:
    """Return the release in use; None when the home has had no update, or the record cannot be read."""
    try:
        found = json.loads((releases_folder(home) / IN_USE).read_bytes())
        return ReleaseInUse(Release(**found["release"]), Release(**found["before"]), str(found["launcher"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_release_in_use(home: Path, record: ReleaseInUse) -> None:
    """Let another release be in use, atomically and durably. Raises OSError."""
    folder = releases_folder(home)
    draft = folder / f".{IN_USE}.{os.getpid()}"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / IN_USE)
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove_release_in_use(home: Path) -> None:
    """Let the first installation be in use again. Raises OSError."""
    (releases_folder(home) / IN_USE).unlink(missing_ok=True)


def become_release_in_use(home: Path, arguments: list[str]) -> None:
    """Replace this process by the release in use, if that is another one. Without such a release, or when its files
    are gone, return.
    """
    if not (releases_folder(home) / IN_USE).exists() or os.environ.get(STAY) in ("1", str(os.getpid())):
        return
    found = read_release_in_use(home)
    if found is None or _environment(found.release.python) == Path(sys.prefix).resolve():
        return
    if not os.access(found.release.python, os.X_OK):
        sys.stderr.write(
            f"Warning: Trunkline {found.release.version} is in use, and {found.release.python} is gone. This release "
            "runs instead. Install it again: trunkline update. Or go back: trunkline update --back.\n"
        )
        return
    os.environ[STAY] = str(os.getpid())
    os.execv(found.release.python, [found.release.python, "-m", "trunkline.cli.main", *arguments])


def launcher(home: Path) -> str:
    """Return the Python that a service of a home starts: that of the first installation, because the folders of
    releases are removed in time.
    """
    found = read_release_in_use(home)
    return found.launcher if found is not None and os.access(found.launcher, os.X_OK) else sys.executable


def _environment(python: str) -> Path:
    """Return the virtual environment of a Python, whose file is a link to another folder."""
    return Path(python).parent.parent.resolve()
