"""Asking an embedder for the vectors of texts, so that a text which it refuses does not keep others from theirs."""

import logging
from collections.abc import Sequence

from trunkline.api.memory import Embedder, Vector

_log = logging.getLogger(__name__)

PROBE = "word"
"""A text that every embedder takes."""


async def probe_dimensions(embedder: Embedder) -> int:
    """The length of the embedder's vectors: of the one of a common word. Raises what the embedder raises."""
    (vector,) = await embedder.embed([PROBE])
    return len(vector)


async def embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """A vector for each text; None for a text that the embedder refuses by itself.

    When some fail together, the halves are asked for on their own, as long as the embedder answers at all.

    Raises:
        Exception: the embedder does not answer.
    """
    try:
        vectors = list(await embedder.embed(texts))
        if len(vectors) != len(texts):
            raise ValueError(f"it answers {len(texts)} texts with {len(vectors)} vectors")
        return list(vectors)
    except Exception as error:
        if len(await embedder.embed([PROBE])) != 1:
            raise
        if len(texts) == 1:
            _log.warning(
                "the embedder %s refused a text of %d characters, which only words find: %s",
                embedder.name,
                len(texts[0]),
                error,
            )
            return [None]
    middle = len(texts) // 2
    return [*await embed_each(embedder, texts[:middle]), *await embed_each(embedder, texts[middle:])]
