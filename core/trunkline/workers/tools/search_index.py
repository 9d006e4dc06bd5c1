"""Full-text search for tools, by the words of their names and descriptions. Ignores permissions."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from trunkline._util.nlp.similarity import common_language, concepts
from trunkline.contracts.tools.messages import ToolSpec

IN_NAME = 3.0
"""The weight of a word in a tool's name, where a word in its description has 1."""

_JOINTS = re.compile(r"[_:/-]|(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Entry:
    spec: ToolSpec
    language: str
    name: frozenset[str]
    words: frozenset[str]


class ToolSearchIndex:
    """The words of a set of tools. Rare words have more weight. Inflections and some synonyms count as one word, by
    the rules of each description's language.
    """

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._entries = [_entry(spec) for spec in specs]
        self._count = Counter(word for entry in self._entries for word in entry.name | entry.words)

    def search(self, question: str) -> list[ToolSpec]:
        """Return the tools that share a word with the question, the best match first; equal matches in the given
        order.
        """
        languages = {entry.language for entry in self._entries}
        asked = {language: frozenset(concepts(_split_words(question), language)) for language in languages}
        scored = [(self._score(entry, asked[entry.language]), entry.spec) for entry in self._entries]
        return [spec for score, spec in sorted(scored, key=lambda one: -one[0]) if score > 0]

    def _score(self, entry: _Entry, words: frozenset[str]) -> float:
        return sum(
            log(1 + len(self._entries) / self._count[word]) * (IN_NAME if word in entry.name else 1.0)
            for word in words & (entry.name | entry.words)
        )


def _entry(spec: ToolSpec) -> _Entry:
    language = common_language(spec.description)
    parameters = " ".join(spec.parameters.get("properties", ()))
    name, text = f"{spec.name} {spec.own_name}", f"{spec.source} {spec.description} {parameters}"
    return _Entry(
        spec,
        language,
        frozenset(concepts(_split_words(name), language)),
        frozenset(concepts(_split_words(text), language)),
    )


def _split_words(text: str) -> str:
    """Split names into words: ``read_file`` and ``readFile`` become ``read file``."""
    return _JOINTS.sub(" ", text)
