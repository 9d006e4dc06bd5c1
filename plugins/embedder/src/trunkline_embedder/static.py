"""The static embedder: a text's vector is the weighted sum of its tokens' vectors. Holds the weights, once loaded."""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from trunkline.api.memory import Embedder

if TYPE_CHECKING:
    import numpy.typing
    from wordllama.inference import WordLlamaInference

FIRST_MERGE = 259
"""Tokens below are signs and bytes. From here on a smaller number means a commoner token: byte-pair encoding made it
earlier."""

HALF = 100
"""The rank of a token that weighs one half. By Zipf's law a rank tells how common a token is; rare ones weigh more,
after Arora et al., "A Simple but Tough-to-Beat Baseline for Sentence Embeddings" (2017)."""

LETTER_WEIGHT = 0.05
"""Of a token that is a single letter or sign, whatever its number."""

_NOISE = re.compile(r"'s\b|[^\w\s]")


class StaticEmbedder(Embedder):
    """WordLlama's 256 dimensions of Llama 2's tokens, weighted by how rare a token is. English."""

    name = "static"
    model = "wordllama-l2-supercat-256-by-rarity"
    batch = 512

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Vectors of length one; of a text without a word, zeros."""
        return await anyio.to_thread.run_sync(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        encoded = self._model.tokenizer.encode_batch(
            [normalize(text) for text in texts], add_special_tokens=False
        )
        return [self._vector(one.ids).tolist() for one in encoded]

    def _vector(self, tokens: Sequence[int]) -> "numpy.typing.NDArray[numpy.float32]":
        import numpy.typing

        chosen = numpy.asarray(tokens, dtype=numpy.intp)
        total: numpy.typing.NDArray[numpy.float32] = self._weights[chosen] @ self._model.embedding[
            chosen
        ].astype(numpy.float32)
        length = float(numpy.linalg.norm(total))
        return total / length if length else total

    @cached_property
    def _model(self) -> "WordLlamaInference":
        """From the package's own files: nothing is ever downloaded."""
        import wordllama

        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        model.tokenizer.no_padding()
        return model

    @cached_property
    def _weights(self) -> "numpy.typing.NDArray[numpy.float32]":
        """Of every token."""
        import numpy.typing

        ranks = numpy.maximum(numpy.arange(len(self._model.embedding)) - FIRST_MERGE, 1)
        tokenizer = self._model.tokenizer
        letters = [len((tokenizer.id_to_token(token) or "").lstrip("▁")) <= 1 for token in range(len(ranks))]
        return numpy.where(letters, LETTER_WEIGHT, ranks / (ranks + HALF)).astype(numpy.float32)


def normalize(text: str) -> str:
    """Lower-case words without signs: a name at the beginning of a sentence is the same name."""
    return " ".join(_NOISE.sub(" ", text).lower().split())
