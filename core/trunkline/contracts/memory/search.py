"""The search of memory, by text or by file name."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from trunkline.contracts.memory.access import CallerAccess
from trunkline.contracts.memory.files import MEMORY_READ_MANY, ReadManyMemory
from trunkline.contracts.memory.operation import query
from trunkline_bus import Payload

MAX_REPLACED_HITS = 100
"""The number of hits that are requested if some of the found hits may not be shown."""


PassageKind = Literal["file", "document", "turn", "chunk", "fact"]
"""The kind of a search hit: ``file`` and ``document`` are lines of one, ``turn`` is a message of a conversation,
``chunk`` is a chunk of memory, ``fact`` is a chunk of the type ``fact``.
"""


class SearchMemory(Payload, frozen=True, kw_only=True, tag="memory.search.v1"):
    """Search the text or, with ``kind`` ``filename``, the names of files under ``path``. The best hits come first.

    The other fields restrict a search of text: ``kinds`` lists the kinds of passages to find. A hit must have all of
    ``tags``. ``speaker`` is a name or a role. ``since`` (inclusive) and ``until`` (exclusive) limit when the passage
    was said. ``conversation`` is the id of a conversation. ``min_confidence`` (0 to 1) is the lowest confidence of a
    hit; passages without a confidence pass. Dates in the query, such as "last Tuesday", are relative to ``asked_at``.
    Without it they are relative to the present, or to the end of ``conversation`` if that ended long ago.

    A search never returns the results of tools that read memory. It returns the queries of earlier searches of memory,
    and the learner's episodes, only if ``kinds`` is not empty.
    """

    query: str
    path: str = ""
    kind: Literal["content", "filename"] = "content"
    limit: int = 10
    kinds: tuple[PassageKind, ...] = ()
    tags: tuple[str, ...] = ()
    speaker: str = ""
    since: datetime | None = None
    until: datetime | None = None
    conversation: str = ""
    min_confidence: float = 0.0
    asked_at: datetime | None = None


_ADDING = frozenset(("words", "neighbours", "meaning", "link", "time"))


class HitExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that contributes to the score of a hit.

    The ``weight`` of these signals is added to the score: ``words``, ``neighbours`` (words that occur only in the
    messages around the hit), ``meaning``, ``link``, ``time``. The ``weight`` of these multiplies the score: ``tags``,
    ``speaker``, ``question``, ``date``, ``recency``, ``confidence``, ``talk``. ``detail`` is text for people: the words
    found, the tag or the link.
    """

    signal: str
    weight: float
    detail: str = ""

    @property
    def is_additive(self) -> bool:
        """Report whether the weight is added to the score; otherwise it multiplies the score."""
        return self.signal in _ADDING


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that matches a search.

    ``line`` counts from 1. ``context`` is the text around the hit. ``id`` is the id of the chunk or message. ``page``
    counts from 1 and is None for files without pages. ``at`` is when the passage was said. ``score`` is the sum of the
    additive signals in ``why``, times its multiplying signals.
    """

    path: str
    line: int
    content: str
    context: str
    score: float
    kind: PassageKind = "file"
    id: str = ""
    page: int | None = None
    at: datetime | None = None
    speaker: str = ""
    confidence: float | None = None
    conversation: str = ""
    why: tuple[HitExplanation, ...] = ()


class MemoryHits(Payload, frozen=True, kw_only=True, tag="memory.hits.v1"):
    """The hits of a search, the best first.

    ``vectors`` is the share (0 to 1) of passages that a search by meaning can find. It is None without an embedder;
    then the search compared words only.
    """

    hits: tuple[MemoryHit, ...] = ()
    vectors: float | None = None

    @property
    def searched(self) -> str:
        """A sentence that says how the search worked."""
        return describe_search(self.vectors)


def describe_search(vectors: float | None) -> str:
    """Describe in a sentence how much of memory was searched by meaning.

    ``vectors`` is the share (0 to 1) of passages that have vectors; None means that there is no embedder.
    """
    if vectors is None:
        return "Words alone were searched, not meaning: no embedder is chosen ([memory] embedder)."
    if vectors == 0:
        return "Words alone were searched: there are no vectors to compare (trunkline memory stats)."
    if vectors == 1:
        return "Words and meaning were searched."
    missing = f"{max(0.01, 1 - vectors):.0%} of all passages have no vector yet"
    return f"Words and meaning were searched; {missing}, and words alone find them."


async def _shown_hits(access: CallerAccess, request: SearchMemory, reply: MemoryHits) -> MemoryHits:
    hits = await _visible_hits(access, reply.hits)
    if len(hits) < len(reply.hits) and request.limit < MAX_REPLACED_HITS:
        # Further hits may replace those left out.
        more = await access.send(MEMORY_SEARCH, replace(request, limit=MAX_REPLACED_HITS))
        hits = (await _visible_hits(access, more.hits))[: request.limit]
    return replace(reply, hits=tuple(hits))


async def _visible_hits(access: CallerAccess, hits: Sequence[MemoryHit]) -> Sequence[MemoryHit]:
    """Return the hits that may be shown."""
    shown = [hit for hit in hits if await access.is_visible(hit.path)]
    paths = tuple({hit.path for hit in shown if access.depends_on_content(hit.path)})
    if not paths:
        return shown
    files = (await access.send(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files
    visible = {file.path for file in files if not access.withholds(file.path, file.content)}
    return [hit for hit in shown if hit.path not in paths or hit.path in visible]


MEMORY_SEARCH = query(
    "search", SearchMemory, MemoryHits, "Search text or names.",
    ("gateway", "monitor", "tools", "operator"), extent="reply", filter=_shown_hits,
)  # fmt: skip
