"""Chunks in a dictionary, for tests of retrieval."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any


class StoredChunks:
    """Answers as memory does. ``links`` are (from, type, to)."""

    def __init__(self, texts: dict[str, str], links: Sequence[tuple[str, str, str]] = ()) -> None:
        self._chunks = {id: _chunk(id, text) for id, text in texts.items()}
        self._links = links

    async def chunk(self, chunk: str, /) -> Any:
        return self._chunks.get(chunk)

    async def recall(self, query: str, /, *, limit: int, min_confidence: float) -> Any:
        words = set(query.lower().split())
        scores = {id: len(words & set(chunk.content.lower().split())) for id, chunk in self._chunks.items()}
        best = sorted((id for id in scores if scores[id]), key=lambda id: -scores[id])[:limit]
        return SimpleNamespace(
            chunks=[SimpleNamespace(chunk=self._chunks[id], score=float(scores[id])) for id in best]
        )

    async def chunks(self, *, tags: Sequence[str], limit: int) -> Sequence[Any]:
        return [chunk for chunk in self._chunks.values() if set(tags) <= set(chunk.tags)][:limit]

    async def linked(self, chunk: str, link_type: str | None, /) -> Sequence[Any]:
        found = [(kind, target) for source, kind, target in self._links if source == chunk]
        return [
            SimpleNamespace(type=kind, strength=1.0, incoming=False, chunk=self._chunks[target])
            for kind, target in found
            if link_type in (None, kind)
        ]


def _chunk(id: str, text: str) -> Any:
    about = SimpleNamespace(
        created_at=datetime(2026, 5, 4, tzinfo=UTC), confidence=0.7, conversation_id="conv_1"
    )
    tags = tuple(word[1:] for word in text.split() if word.startswith("#"))
    return SimpleNamespace(id=id, content=text, type="note", tags=tags, tokens=len(text) // 4, metadata=about)
