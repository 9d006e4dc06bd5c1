"""The memory worker's hooks: stores, rules, types, importers, embedders, purgers and the ranking of hits."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    from trunkline.contracts.memory.embedder import Embedder
    from trunkline.contracts.memory.importer import Importer
    from trunkline.contracts.memory.purger import Purger
    from trunkline.contracts.memory.search import MemoryHit, SearchMemory
    from trunkline.contracts.memory.store import ChunkType, LinkType, MemoryRule, MemoryStore
    from trunkline.contracts.plugins.extensions import PluginSettings


@hookspec
def trunkline_memory_stores(settings: "PluginSettings") -> "Iterable[MemoryStore]":
    """Add a memory store. The memory worker uses the store of the plugin that ``[memory] store`` names.

    ```python
    import trunkline
    from trunkline.api.bus import Refusal
    from trunkline.api.store import MemoryStore

    class Nothing(MemoryStore):
        async def _refuse(self, *args, **kwargs):
            raise Refusal("not_found", "This store holds nothing.")

        open = aclose = read = change = edit = move = delete = search = list = history = export = _refuse
        append_conversation = load_conversation = list_conversations = find_conversation = _refuse

    @trunkline.hookimpl
    def trunkline_memory_stores():
        return [Nothing()]
    ```
    """


@hookspec
def trunkline_importers(settings: "PluginSettings") -> "Iterable[Importer]":
    """Add an importer of another system's memory. ``trunkline memory import`` asks each importer whether it recognises
    the given data. An importer runs in the process that asks for the import, not in the memory worker.

    ```python
    import trunkline
    from trunkline.api.importer import ImportedFile, Importer

    class Diary(Importer):
        name = "diary"
        title = "A diary"

        def recognises(self, source):
            return source.has("diary.txt")

        def read(self, source):
            yield ImportedFile(path="documents/diary.md", data=source.data("diary.txt"), source="diary.txt")

    @trunkline.hookimpl
    def trunkline_importers():
        return [Diary()]
    ```
    """


@hookspec
def trunkline_embedders(settings: "PluginSettings") -> "Iterable[Embedder]":
    """Add an embedder, which turns texts into vectors, so that search compares meanings. The memory worker uses the
    one that ``[memory] embedder`` names. Without that setting nothing is embedded.

    ```python
    import trunkline
    from trunkline.api.memory import Embedder

    class Letters(Embedder):
        name = "letters"
        model = "letters-1"

        async def embed(self, texts):
            return [[text.casefold().count(letter) for letter in "etaoinshrdlu"] for text in texts]

    @trunkline.hookimpl
    def trunkline_embedders():
        return [Letters()]
    ```
    """


@hookspec
def trunkline_memory_rules(settings: "PluginSettings") -> "Iterable[MemoryRule]":
    """Add rules that check every change of memory before its commit, except edits by hand. A guard.

    A rule is synchronous, because all other changes wait for it.

    ```python
    import trunkline
    from trunkline.api.bus import Refusal

    def small_files_only(change):
        if any(content and len(content) > 1_000_000 for content in change.files.values()):
            raise Refusal("write_failure", "A file in memory may have one million bytes at most.")
        return change

    @trunkline.hookimpl
    def trunkline_memory_rules():
        return [small_files_only]
    ```
    """


@hookspec
def trunkline_chunk_types(settings: "PluginSettings") -> "Iterable[ChunkType]":
    """Add types of chunks. A chunk of the type must have its required fields, and only fields that the type names.

    ```python
    import trunkline
    from trunkline.api.store import ChunkType

    @trunkline.hookimpl
    def trunkline_chunk_types():
        return [
            ChunkType("api_endpoint", "Documentation of an API's endpoint.", required_fields=("method", "path"))
        ]
    ```
    """


@hookspec
def trunkline_link_types(settings: "PluginSettings") -> "Iterable[LinkType]":
    """Add types of links that callers make between chunks.

    ```python
    import trunkline
    from trunkline.api.store import LinkType

    @trunkline.hookimpl
    def trunkline_link_types():
        return [LinkType("depends_on", "The chunk needs the other one.")]
    ```
    """


@hookspec
def trunkline_purgers(settings: "PluginSettings") -> "Iterable[Purger]":
    """Add purgers, which remove the plugin's copies of a text that the owner purges. ``without`` returns the rest
    of a file that the plugin wrote to memory, for every version. ``erase`` removes the text from a store of the
    plugin and reports the copies that remain there.

    ```python
    import trunkline
    from trunkline.api.memory import Purger, RemainingCopy

    class Scores(Purger):
        name = "scores"

        def __init__(self):
            self.scores = {}

        async def erase(self, purge):
            for conversation in purge.conversations:
                self.scores.pop(conversation, None)
            return [RemainingCopy(where="scores", what="The sums of all conversations stay.")]

    @trunkline.hookimpl
    def trunkline_purgers():
        return [Scores()]
    ```
    """


@hookspec(firstresult=True)
def trunkline_rank(query: "SearchMemory", hits: "Sequence[MemoryHit]") -> "Sequence[MemoryHit] | None":
    """Decide the order of the hits of a search, best first. Return only hits that were given.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_rank(query, hits):
        return sorted(hits, key=lambda hit: hit.path)
    ```
    """
