"""What search is compared with: BM25 as textbooks have it, BM25 over windows of turns, and vectors alone.

All use the same stems, stop words and vectors as memory does, and score every text.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy
import numpy.typing

from benchmarks.memory.collections.collection import Collection
from trunkline.api.nlp import STOP_WORDS, language_of, query_tokens
from trunkline.contracts.memory.embedder import Embedder
from trunkline_git_store.stemmer import TextStemmer

Scores = numpy.typing.NDArray[numpy.float64]

K1, B = 1.2, 0.75
WINDOWS = (1, 3, 5)


class Baselines:
    """The texts of some collections, and orders of them for a question. ``embedder`` gives the vectors."""

    def __init__(self, collections: Sequence[Collection], embedder: Embedder) -> None:
        self._stems = TextStemmer()
        self._embedder = embedder
        self.ids: list[str] = []
        texts: list[str] = []
        windows: dict[int, list[str]] = {size: [] for size in WINDOWS}
        for collection in collections:
            for conversation in collection.conversations:
                said = [
                    f"{one.name}: {one.content}" if one.name else one.content for one in conversation.messages
                ]
                self.ids += [one.id for one in conversation.messages]
                texts += said
                for size, found in windows.items():
                    found += [
                        "\n".join(said[max(0, at - size // 2) : at + size // 2 + 1])
                        for at in range(len(said))
                    ]
            self.ids += [one.id for one in collection.documents]
            alone = [one.text for one in collection.documents]
            texts += alone
            for found in windows.values():
                found += alone
        self._texts = texts
        self._bm25 = {size: Bm25([self._stem(text) for text in found]) for size, found in windows.items()}
        self._vectors: Scores | None = None

    async def embed(self) -> None:
        """Compute the vectors of all texts. Call it before ``orders``."""
        found: list[Sequence[float]] = []
        for at in range(0, len(self._texts), 512):
            found += await self._embedder.embed([text[:4_000] for text in self._texts[at : at + 512]])
        self._vectors = numpy.asarray(found)

    async def orders(self, question: str) -> Mapping[str, list[str]]:
        """Return the ids of the texts in the order of each method, the best ten."""
        words = list(dict.fromkeys(query_tokens(question)))
        common = STOP_WORDS[language_of(words)]
        terms = self._stem(" ".join(word for word in words if word not in common) or question)
        by_window = {size: one.scores(terms) for size, one in self._bm25.items()}
        assert self._vectors is not None
        (vector,) = await self._embedder.embed([question])
        dense = self._vectors @ numpy.asarray(vector)
        words_alone = numpy.sum([standardized(one) for one in by_window.values()], axis=0)
        return {
            "BM25": self._best(by_window[1]),
            "BM25, windows": self._best(words_alone),
            "vectors": self._best(dense),
            "BM25, windows and vectors": self._best(words_alone + standardized(dense)),
        }

    def _best(self, scores: Scores) -> list[str]:
        return [self.ids[at] for at in numpy.argsort(-scores, kind="stable")[:10]]

    def _stem(self, text: str) -> list[str]:
        return self._stems.stem_text(text)[1].split()


class Bm25:
    """BM25 with an inverted index (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009)."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        lengths = numpy.asarray([len(text) for text in texts], dtype=numpy.float64)
        self._norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        postings: dict[str, tuple[list[int], list[int]]] = {}
        for at, text in enumerate(texts):
            for term, count in Counter(text).items():
                places, counts = postings.setdefault(term, ([], []))
                places.append(at)
                counts.append(count)
        self._postings = {
            term: (numpy.asarray(places), numpy.asarray(counts, dtype=numpy.float64))
            for term, (places, counts) in postings.items()
        }

    def scores(self, terms: Sequence[str]) -> Scores:
        """Return the score of each text."""
        total = numpy.zeros(len(self._norm))
        for term in terms:
            if term in self._postings:
                places, counts = self._postings[term]
                rarity = math.log(1 + (len(total) - len(places) + 0.5) / (len(places) + 0.5))
                total[places] += rarity * counts * (K1 + 1) / (counts + self._norm[places])
        return total


def standardized(scores: Scores) -> Scores:
    """Return scores as their distances from the mean, in standard deviations."""
    return (scores - scores.mean()) / (scores.std() or 1.0)
