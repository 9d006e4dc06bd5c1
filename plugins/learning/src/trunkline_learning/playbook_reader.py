"""All models' playbooks as memory holds them. A strategy that a turn used may be another model's."""

from collections.abc import Mapping

import msgspec

from trunkline_learning.model_folders import model_folder
from trunkline_learning.playbook import Playbook, Strategy
from trunkline_learning.store import LearningStore
from trunkline_learning.turns import FinishedTurn


class StoredPlaybook(msgspec.Struct, frozen=True):
    """A model's strategies by id, and the hash of each one's file."""

    strategies: Playbook
    hashes: Mapping[str, str]


class PlaybookReader:
    """Reads playbooks. Raises BusError kinds."""

    def __init__(self, store: LearningStore) -> None:
        self._store = store

    async def read_playbook(self, folder: str) -> StoredPlaybook:
        """The playbook of one model, by its folder."""
        return StoredPlaybook(*await self._store.playbook(folder))

    async def read_playbooks(self, *turns: FinishedTurn) -> dict[str, StoredPlaybook]:
        """Return the playbooks of the models that answered, and all others when a turn used a strategy that is in none
        of them."""
        books = {
            folder: await self.read_playbook(folder)
            for folder in dict.fromkeys(model_folder(one.model) for one in turns)
        }
        used = {id for turn in turns for id in turn.strategies}
        if not used.issubset({id for book in books.values() for id in book.strategies}):
            for folder in await self._store.folders():
                if folder not in books:
                    books[folder] = await self.read_playbook(folder)
        return books

    async def read_strategies(self, turn: FinishedTurn) -> dict[str, Strategy]:
        """The strategies that a turn had before it."""
        found: dict[str, Strategy] = {}
        for book in (await self.read_playbooks(turn)).values():
            found |= {id: book.strategies[id] for id in turn.strategies if id in book.strategies}
        return found
