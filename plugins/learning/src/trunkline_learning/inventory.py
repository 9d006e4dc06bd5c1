"""Lists all learned items for people. Reads only."""

from collections.abc import Sequence
from datetime import datetime

from trunkline.api.bus import Bus
from trunkline_learning import files
from trunkline_learning.episodes import Episode
from trunkline_learning.model_folders import model_folder
from trunkline_learning.playbook import Playbook
from trunkline_learning.store import LearningStore


class Inventory:
    """Lists episodes, playbooks and the files that a person may forget. Its methods raise BusError kinds."""

    def __init__(self, bus: Bus) -> None:
        self._store = LearningStore(bus)

    async def latest_episodes(self, model: str | None, limit: int) -> list[Episode]:
        """The newest episodes of a model, or of all."""
        days: list[tuple[str, datetime]] = []
        for folder in await self._of(model):
            days += await self._store.episode_days(folder)
        days.sort(key=lambda pair: pair[1], reverse=True)
        end = next(
            (at for at, (_, day) in enumerate(days) if at >= limit and day != days[limit - 1][1]), len(days)
        )
        found = [
            files.decode(one.content, Episode)
            for one in (await self._store.files(path for path, _ in days[:end])).values()
        ]
        newest = sorted(
            (one for one in found if one is not None), key=lambda one: one.created_at, reverse=True
        )
        return newest[:limit]

    async def all_playbooks(self, model: str | None) -> dict[str, Playbook]:
        """The strategies by the folders of the models."""
        return {folder: (await self._store.playbook(folder))[0] for folder in await self._of(model)}

    async def forgettable_files(self) -> dict[str, str]:
        """Return the items that a person may forget by name: episodes and strategies by id, ``profile``, numbers."""
        names: dict[str, str] = {}
        for folder in await self._store.folders():
            for id in (await self._store.playbook(folder))[0]:
                names.setdefault(id, files.strategy_path(folder, id))
            names |= {
                path.rpartition("/")[2][:-5]: path for path, _ in await self._store.episode_days(folder)
            }
            names[f"{folder}/metrics"] = files.metrics_path(folder)
        names["profile"] = files.PROFILE
        there = await self._store.files(names.values())
        return {name: path for name, path in names.items() if path in there}

    async def _of(self, model: str | None) -> Sequence[str]:
        return await self._store.folders() if model is None else [model_folder(model)]
