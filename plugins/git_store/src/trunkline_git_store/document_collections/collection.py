"""The documents of one conversation: a folder with a small repository, in which the texts lie, and the index over it.

To throw them away is to remove the folder: no history of them stays.
"""

from pathlib import Path

import apsw
import pygit2

from trunkline import MemoryHit
from trunkline.api.bus import Refusal
from trunkline.api.documents import CollectedDocument, Excerpt, page_of, parse_origin, text_around
from trunkline.api.memory import SearchMemory
from trunkline.api.store import normalize_path
from trunkline_git_store.conversations import ConversationCache
from trunkline_git_store.index.search_index import SearchIndex
from trunkline_git_store.repository import BlobEntry, Repository, entry_at, files_in
from trunkline_git_store.search.content import search_content

FOLDER = "documents"
"""The folder of the texts in a collection's repository: its files are indexed as documents."""

ACTOR = "trunkline"
MOST_DOCUMENTS = 500
MOST_BYTES = 128 * 1024 * 1024


class DocumentCollection:
    """The documents of one conversation. One thread at a time."""

    def __init__(self, folder: Path) -> None:
        if not (folder / ".git").is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            pygit2.init_repository(folder, initial_head="main").free()
        self._repository = Repository(folder, sync=False)
        self._repository.tree(self._repository.head())  # raises when it is damaged
        self._index = SearchIndex(folder, folder / "index.db", ConversationCache())

    def close(self) -> None:
        """Let go of the files."""
        self._index.close()
        self._repository.close()

    def put(self, name: str, text: str) -> None:
        """Add a document, or replace it. Raises Refusal when it has no room."""
        path, data = f"{FOLDER}/{normalize_path(name)}", text.encode("utf-8", "replace")
        held = {one.name: one.size for one in self.documents() if one.name != name}
        if len(held) >= MOST_DOCUMENTS or sum(held.values()) + len(data) > MOST_BYTES:
            raise Refusal(
                "write_failure", "This conversation has reached its limit of documents. Clear them first."
            )
        head = self._repository.head()
        blob = self._repository.write_blob(data)
        base = None if head is None else self._repository.commit(head).tree_id
        tree = self._repository.write_tree(base, {path: BlobEntry(blob)})
        self._repository.advance_branch(head, self._repository.write_commit(head, tree, ACTOR, f"Add {name}"))

    def documents(self) -> list[CollectedDocument]:
        """Return the documents, by name."""
        head = self._repository.head()
        return [
            CollectedDocument(
                name=path.removeprefix(f"{FOLDER}/"), size=len(self._repository.data(entry.blob))
            )
            for path, entry in files_in(self._repository.tree(head))
        ]

    def search(self, query: str, limit: int) -> list[Excerpt]:
        """The best places, best first."""
        self._index.catch_up()
        request = SearchMemory(query=query, limit=limit)

        def ask(connection: apsw.Connection) -> tuple[MemoryHit, ...]:
            return search_content(connection, self._index, request)

        return [self._excerpt(hit) for hit in self._index.database.use(ask)]

    def _excerpt(self, hit: MemoryHit) -> Excerpt:
        entry = entry_at(self._repository.tree(self._repository.head()), hit.path)
        text = self._repository.data(entry.blob).decode("utf-8", "replace") if entry else hit.context
        came = parse_origin(text)
        return Excerpt(
            source=came.source if came else hit.path.removeprefix(f"{FOLDER}/"),
            text=text_around(text, hit.line),
            line=hit.line,
            page=page_of(text, hit.line),
            score=hit.score,
        )
