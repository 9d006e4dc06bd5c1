"""The layout of a memory root. Names only."""

from pathlib import Path

import msgspec


class RootLayout(msgspec.Struct, frozen=True):
    """The paths of a memory root: the root, and the store's own folder inside its ``.git``."""

    root: Path

    @property
    def git(self) -> Path:
        """The repository."""
        return self.root / ".git"

    @property
    def state_folder(self) -> Path:
        """Ours: the lock, files on their way, the note of an unfinished checkout."""
        return self.git / "trunkline"

    @property
    def stage(self) -> Path:
        """Files on their way into the root."""
        return self.state_folder / "stage"

    @property
    def damaged(self) -> Path:
        """The folder for damaged files that were moved aside."""
        return self.state_folder / "damaged"

    @property
    def intent(self) -> Path:
        """The note of an unfinished checkout."""
        return self.state_folder / "intent.json"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.state_folder / "lock"
