"""The folder of a new chunk: the folder of its day, or one of that day's subfolders once there are very many
chunks."""

from collections.abc import Awaitable, Callable, Sequence

from trunkline.contracts.memory.chunk_files import CROWDED, chunk_path, day_folder
from trunkline.contracts.memory.messages import MemoryEntry
from trunkline_bus import Refusal

Listing = Callable[[str], Awaitable[Sequence[MemoryEntry]]]
_KNOWN = 1_000
"""Days whose number of chunks is kept in mind."""


class DayFolders:
    """Counts the chunks of each day by looking once. ``listing`` names what lies in a folder."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._counts: dict[str, int] = {}

    async def path(self, place: str, chunk: str) -> str:
        """The path for a new chunk."""
        folder = day_folder(place, chunk[6:16])
        if folder not in self._counts:
            if len(self._counts) > _KNOWN:
                self._counts.clear()
            self._counts.setdefault(folder, await self._count(folder))  # another may have looked meanwhile
        self._counts[folder] += 1
        return chunk_path(place, chunk, crowded=self._counts[folder] > CROWDED)

    async def _count(self, folder: str) -> int:
        try:
            return len(await self._listing(folder))
        except Refusal:
            return 0
