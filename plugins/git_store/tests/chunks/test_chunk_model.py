"""The chunk store compared with a simple model: after any operations in any order, both contain and find the same."""

import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.from_thread
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from trunkline.contracts.memory.chunks import UpdateChunk
from trunkline.contracts.memory.store import StoreContext
from trunkline_bus import Refusal, Scope
from trunkline_git_store.store import GitMemoryStore

from .conftest import Chunks, chunks_in

WORDS = ("apple", "bean", "cherry", "dill")
LAYERS = ("project_agent", "project_global")


@dataclass
class ModelChunk:
    """A chunk as the model has it."""

    word: str
    tags: frozenset[str]
    layer: str
    archived: bool = False
    links: dict[str, float] = field(default_factory=dict)


class ChunkMachine(RuleBasedStateMachine):
    """Two agents of one block make permitted changes; the model is a dictionary."""

    made: Bundle[str] = Bundle("made")

    @initialize()
    def begin(self) -> None:
        self.held: dict[str, ModelChunk] = {}
        self.base = Path(tempfile.mkdtemp(prefix="chunk-model-"))
        self._portal = anyio.from_thread.start_blocking_portal("asyncio")
        self.portal = self._portal.__enter__()
        self.open()

    def open(self) -> None:
        async def open_store() -> Chunks:
            store = GitMemoryStore()
            await store.open(
                StoreContext(self.base / "memory", self.base / "cache", commit_window=0, fsync=False)
            )
            return await chunks_in(store)

        self.chunks = self.portal.call(open_store)

    def run(self, job: Coroutine[Any, Any, Any]) -> Any:
        async def wait() -> Any:
            return await job

        return self.portal.call(wait)

    def refused(self, job: Coroutine[Any, Any, Any]) -> bool:
        try:
            self.run(job)
        except Refusal:
            return True
        return False

    def teardown(self) -> None:
        if hasattr(self, "chunks"):
            self.portal.call(self.chunks.store.aclose)
            self._portal.__exit__(None, None, None)
            shutil.rmtree(self.base)

    # What is done --------------------------------------------------------------------------------------------

    @rule(
        target=made,
        word=st.sampled_from(WORDS),
        tags=st.sets(st.sampled_from("xyz")),
        layer=st.sampled_from(LAYERS),
    )
    def remember(self, word: str, tags: set[str], layer: str) -> str:
        self.chunks.later(seconds=1)
        chunk: str = self.run(self.chunks.keep(f"The {word} is here", tags=tuple(sorted(tags)), layer=layer))
        self.held[chunk] = ModelChunk(word, frozenset(tags), layer)
        return chunk

    @rule(chunk=made, word=st.sampled_from(WORDS), tags=st.sets(st.sampled_from("xyz")))
    def update(self, chunk: str, word: str, tags: set[str]) -> None:
        request = UpdateChunk(
            id=chunk, actor="agent", block="main", content=f"The {word} is here", tags=tuple(sorted(tags))
        )
        if not self.refused(self.chunks.writer.update(request, Scope())):
            self.held[chunk] = replace(self.held[chunk], word=word, tags=frozenset(tags))
        assert self.is_live(chunk) == (self.run(self.chunks.get(chunk)) is not None)

    @rule(chunk=made)
    def delete(self, chunk: str) -> None:
        assert self.refused(self.chunks.delete(chunk)) != self.is_live(chunk)
        if self.is_live(chunk):
            self.held[chunk].archived = True

    @rule(chunk=made)
    def restore(self, chunk: str) -> None:
        archived = chunk in self.held and self.held[chunk].archived
        assert self.refused(self.chunks.restore(chunk)) != archived
        if archived:
            self.held[chunk].archived = False

    @rule(chunk=made)
    def forget(self, chunk: str) -> None:
        assert self.refused(self.chunks.forget(chunk)) == (chunk not in self.held)
        self.held.pop(chunk, None)

    @rule(source=made, to=made, strength=st.sampled_from((0.25, 1.0)))
    def link(self, source: str, to: str, strength: float) -> None:
        fine = source != to and self.is_live(source) and self.is_live(to)
        assert self.refused(self.chunks.link(source, to, "supports", strength=strength)) != fine
        if fine:
            self.held[source].links[to] = strength

    @rule(source=made, to=made)
    def unlink(self, source: str, to: str) -> None:
        fine = self.is_live(source) and to in self.held[source].links
        if source != to:
            assert self.refused(self.chunks.link(source, to, "supports", remove=True)) != fine
        if fine and source != to:
            del self.held[source].links[to]

    @rule(lose_index=st.booleans())
    def start_again(self, lose_index: bool) -> None:
        time = self.chunks.time
        self.portal.call(self.chunks.store.aclose)
        if lose_index:
            shutil.rmtree(self.base / "cache")
        self.open()
        self.chunks.time = time

    # What must hold ------------------------------------------------------------------------------------------

    def is_live(self, chunk: str) -> bool:
        return chunk in self.held and not self.held[chunk].archived

    @invariant()
    def both_hold_the_same(self) -> None:
        if not hasattr(self, "chunks"):
            return
        for archived in (False, True):
            ours = {chunk for chunk, held in self.held.items() if held.archived == archived}
            assert set(self.run(self.chunks.ids(archived=archived))) == ours
        shared = {chunk for chunk in self.held if self.is_live(chunk) and self.held[chunk].layer == LAYERS[1]}
        assert set(self.run(self.chunks.ids(actor="other"))) == shared

    @invariant()
    def both_find_the_same(self) -> None:
        if not hasattr(self, "chunks"):
            return
        for word in WORDS:
            ours = {chunk for chunk in self.held if self.is_live(chunk) and self.held[chunk].word == word}
            assert set(self.run(self.chunks.recall(word, max_results=100)).source_chunks) == ours
        for tag in "xyz":
            ours = {chunk for chunk in self.held if self.is_live(chunk) and tag in self.held[chunk].tags}
            assert set(self.run(self.chunks.ids(tags=(tag,)))) == ours

    @invariant()
    def both_are_linked_the_same(self) -> None:
        if not hasattr(self, "chunks"):
            return
        for chunk in self.held:
            if self.is_live(chunk):
                ours = {
                    (one, strength) for one, strength in self.held[chunk].links.items() if self.is_live(one)
                }
                found = self.run(self.chunks.links(chunk, "supports"))
                assert {(one.chunk.id, one.strength) for one in found if not one.incoming} == ours


TestChunkModel = ChunkMachine.TestCase
TestChunkModel.settings = settings(
    max_examples=settings.default.max_examples
    // 8,  # each opens stores; fewer in "make check", more in "wander"
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
