"""An embedder for tests: the same vector for the same text on every machine, and no model.

Texts lie close when they share words, or words that a test says mean the same.
"""

import hashlib
from collections.abc import Mapping, Sequence

from trunkline._util.nlp.tokenizer import tokenize
from trunkline.contracts.memory.embedder import Embedder, Vector


class TinyEmbedder(Embedder):
    """Counts words in a few dozen numbers. ``means`` maps words to synonyms, such as ``{"car": "vehicle"}``.

    ``asked`` holds the texts it was given; while ``fault`` is set it is raised.
    """

    def __init__(
        self,
        means: Mapping[str, str] = {},
        *,
        model: str = "tiny-1",
        dimensions: int = 64,
        name: str = "tiny",
    ) -> None:
        self.name = name
        self.model = model
        self.least = 0.5
        self.asked: list[str] = []
        self.fault: Exception | None = None
        self._means = means
        self._dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors; one of zeros for a text without words."""
        if self.fault is not None:
            raise self.fault
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = [0.0] * self._dimensions
        for word in tokenize(text):
            digest = hashlib.blake2b(self._means.get(word, word).encode(), digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            vector[number % self._dimensions] += 1.0 if number >> 32 & 1 else -1.0
        return vector
