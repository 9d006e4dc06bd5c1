"""The functions by which code reads memory, and a note of what it read."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from trunkline import ToolError
from trunkline_rlm.repl.session import HostFunction, HostFunctionError

MOST = 100
"""Chunks that one call brings at most."""

MOST_STEPS = 200
"""The most steps that are reported of one retrieval."""


class ChunkQueries(Protocol):
    """The queries of memory that sessions use. ``trunkline.Memory`` implements it."""

    async def chunk(self, chunk: str, /) -> Any: ...
    async def recall(self, query: str, /, *, limit: int, min_confidence: float) -> Any: ...
    async def chunks(self, *, tags: Sequence[str], limit: int) -> Sequence[Any]: ...
    async def linked(self, chunk: str, link_type: str | None, /) -> Sequence[Any]: ...


class MemoryFunctions:
    """Memory's chunks as plain dictionaries. ``report`` is shown a line for each step."""

    def __init__(self, memory: ChunkQueries, report: Callable[[str], None]) -> None:
        self._memory = memory
        self._report = report
        self.sources: dict[str, None] = {}
        """The ids of chunks whose text was handed out, in the order of the first time."""
        self.steps: list[str] = []

    @property
    def functions(self) -> Mapping[str, HostFunction]:
        """By the names that code knows them under."""
        return {
            "read_chunk": self.read_chunk,
            "search_chunks": self.search_chunks,
            "list_chunks_by_tag": self.list_chunks_by_tag,
            "get_linked_chunks": self.get_linked_chunks,
        }

    async def read_chunk(self, id: str) -> dict[str, Any] | None:
        """A chunk, or None."""
        self._record_step("read_chunk", id)
        found = await _memory_result(self._memory.chunk(_check_text(id)))
        return None if found is None else self._chunk_fields(found)

    async def search_chunks(self, query: str, limit: int = 10) -> list[dict[str, Any]]:
        """The chunks that fit a query best, with their scores."""
        self._record_step("search_chunks", query)
        found = await _memory_result(
            self._memory.recall(_check_text(query), limit=_check_limit(limit), min_confidence=0.0)
        )
        return [{**self._chunk_fields(hit.chunk), "score": round(hit.score, 4)} for hit in found.chunks]

    async def list_chunks_by_tag(self, tags: str | list[str], limit: int = MOST) -> list[dict[str, Any]]:
        """The chunks that have all of these tags, newest first."""
        wanted = (tags,) if isinstance(tags, str) else check_texts(tags, "tags")
        self._record_step("list_chunks_by_tag", ", ".join(wanted))
        found = await _memory_result(self._memory.chunks(tags=wanted, limit=_check_limit(limit)))
        return [self._chunk_fields(chunk) for chunk in found]

    async def get_linked_chunks(self, id: str, link_type: str | None = None) -> list[dict[str, Any]]:
        """The chunks that one is linked to, strongest first, with type and strength of the link."""
        self._record_step("get_linked_chunks", id)
        found = await _memory_result(
            self._memory.linked(_check_text(id), None if link_type is None else _check_text(link_type))
        )
        return [
            {
                **self._chunk_fields(link.chunk),
                "link": link.type,
                "strength": link.strength,
                "incoming": link.incoming,
            }
            for link in found[:MOST]
        ]

    def _chunk_fields(self, chunk: Any) -> dict[str, Any]:
        """Return the fields of a chunk that code can read."""
        self.sources.setdefault(chunk.id)
        about = chunk.metadata
        shown = {
            "id": chunk.id,
            "content": chunk.content,
            "type": chunk.type,
            "tags": chunk.tags,
            "tokens": chunk.tokens,
            "created_at": about.created_at,
            "confidence": about.confidence,
            "conversation_id": about.conversation_id,
        }
        plain: dict[str, Any] = msgspec.to_builtins(shown)
        return plain

    def _record_step(self, name: str, subject: object) -> None:
        step = f"{name}({str(subject)[:80]!r})"
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        self._report(step)


async def _memory_result(answer: Awaitable[Any]) -> Any:
    """Memory's answer; its error is one that code can catch."""
    try:
        return await answer
    except ToolError as error:
        raise HostFunctionError("RuntimeError", str(error)) from error


def check_texts(value: object, what: str) -> tuple[str, ...]:
    """A list of texts that code gave. Raises HostFunctionError for anything else."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise HostFunctionError(
            "TypeError", f"{what}: a list of texts is required, or a dictionary for a context"
        )
    if len(value) > MOST:
        raise HostFunctionError("ValueError", f"{what}: no more than {MOST} at once")
    return tuple(value)


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise HostFunctionError("TypeError", f"a text is required, not {type(value).__name__}")
    return value


def _check_limit(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise HostFunctionError("ValueError", "limit must be a whole number of at least 1")
    return min(value, MOST)
