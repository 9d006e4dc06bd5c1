"""The types of chunks and of links: the built-in types and those of plugins, and the detection of a text's type.

The type is detected from words. No model is called.
"""

import re
from collections.abc import Iterable
from typing import Any

from trunkline.contracts.memory.store import ChunkType, LinkType
from trunkline_bus import Refusal

DECISION = r"decid(?:e|es|ed|ing)|chose|chosen|selected|(?:going|went|go) with|opted for|settled on|concluded"
PATTERN = (
    r"usually|often|tends? to|always|typically|generally|frequently|regularly|"
    r"every time|most of the time|whenever"
)
PREFERENCE = (
    r"prefer(?:s|red|ring|ence|ences)?|likes?|liked|wants?|wanted|rather|dislike[sd]?|hate[sd]?|wish(?:es|ed)?|"
    r"would like|favou?rites?"
)
FACT = (
    r"(?:is|are|was|were) (?:an?|the)\b|works? (?:as|at|for)|worked (?:as|at|for)|located|lives?|lived|born in|"
    r"studie[sd] at|graduated from|ha[sd] \d+|there (?:is|are|was|were)"
)
_FAMILIES = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for kind, words in (
        ("decision", DECISION),
        ("pattern", PATTERN),
        ("preference", PREFERENCE),
        ("fact", FACT),
    )
)
"""The word patterns of each type. The first pattern that matches determines the type."""

CHUNK_TYPES = (
    ChunkType("fact", "Something that is so."),
    ChunkType("preference", "What somebody likes or wants."),
    ChunkType("pattern", "What happens again and again."),
    ChunkType("note", "Anything else."),
    ChunkType("decision", "What was settled."),
)
LINK_TYPES = (
    LinkType("supports", "The chunk speaks for the other one."),
    LinkType("contradicts", "The chunk speaks against the other one."),
)
AUTOMATIC_LINK_TYPES = ("context_of", "follows", "related_to")
"""The types of links that are derived from chunks. A request cannot make such a link."""


def detect_type(text: str) -> str:
    """Return the type of a text from its words: decision, pattern, preference, fact, or otherwise note."""
    return next((kind for kind, words in _FAMILIES if words.search(text)), "note")


class TypeRegistry:
    """The chunk types and link types of this installation."""

    def __init__(self, chunks: Iterable[ChunkType] = (), links: Iterable[LinkType] = ()) -> None:
        self._chunks = {one.name: one for one in (*chunks, *CHUNK_TYPES)}
        self._links = {one.name: one for one in (*links, *LINK_TYPES)}

    def check_chunk_type(self, name: str, fields: dict[str, Any]) -> None:
        """Refuse an unknown type, a custom type without its required fields, and fields that the type does not have.

        Raises:
            Refusal: ``invalid_type``, ``missing_required_fields`` or ``invalid_fields``. The text says what is valid.
        """
        kind = self._chunks.get(name)
        if kind is None:
            raise Refusal(
                "invalid_type", f"There is no chunk type {name[:80]!r}; there are {_listed(self._chunks)}."
            )
        missing = [field for field in kind.required_fields if fields.get(field) in (None, "")]
        if missing:
            raise Refusal("missing_required_fields", f"A chunk of type {name} needs {', '.join(missing)}.")
        if kind.required_fields or kind.optional_fields:
            known = {*kind.required_fields, *kind.optional_fields}
            strange = sorted(fields.keys() - known)
            if strange:
                raise Refusal("invalid_fields", f"A chunk of type {name} has no field {strange[0][:80]!r}.")

    def check_link_type(self, name: str) -> None:
        """Refuse a link type that a request cannot make. Raises Refusal ``invalid_type``."""
        if name in AUTOMATIC_LINK_TYPES:
            raise Refusal("invalid_type", f"Links of type {name} are made by themselves.")
        if name not in self._links:
            raise Refusal(
                "invalid_type", f"There is no link type {name[:80]!r}; there are {_listed(self._links)}."
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
