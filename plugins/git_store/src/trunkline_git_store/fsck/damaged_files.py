"""Putting broken files where they harm nobody. Nothing is deleted: a person may know better."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from trunkline_git_store.root_layout import RootLayout


class DamagedFiles:
    """A folder for what one look found broken, made when it is needed."""

    def __init__(self, places: RootLayout) -> None:
        self.folder = places.damaged / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"

    def move_object(self, file: Path) -> None:
        """Move an object away, as ``ab/cdef…``."""
        target = self.folder / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)

    def move_pack(self, pack: Path) -> None:
        """Move a pack away with all that belongs to it."""
        for part in sorted(pack.parent.glob(pack.stem + ".*")):
            self.move_object(part)
