"""Asking an embedder for the vectors of texts, so that a text which it refuses does not keep others from theirs."""

import logging
from collections.abc import Sequence

from trunkline.api.memory import Embedder, Vector

_log = logging.getLogger(__name__)

PROBE = "word"
"""A text that every embedder takes."""

OF_THE_VENDOR = ("authentication", "rate_limited", "over_budget")
"""The faults of a ModelError that say nothing about the text."""


async def probe_dimensions(embedder: Embedder) -> int:
    """The length of the embedder's vectors: of the one of a common word. Raises what the embedder raises."""
    (vector,) = await embedder.embed([PROBE])
    return len(vector)


async def embed_each(embedder: Embedder, texts: Sequence[str], vectors: dict[str, Vector | None]) -> None:
    """Find a vector for each text; None for a text that the embedder refuses by itself, twice.

    When some fail together, the halves are asked for on their own, as long as the embedder answers at all. What was
    found before a failure is in ``vectors``, because a vendor bills it only once.

    Raises:
        Exception: the embedder does not answer.
    """
    try:
        vectors.update(zip(texts, await _embed(embedder, texts), strict=True))
        return
    except Exception:
        if len(await embedder.embed([PROBE])) != 1:
            raise
    if len(texts) == 1:
        vectors[texts[0]] = await _embed_again(embedder, texts[0])
        return
    middle = len(texts) // 2
    await embed_each(embedder, texts[:middle], vectors)
    await embed_each(embedder, texts[middle:], vectors)


async def _embed(embedder: Embedder, texts: Sequence[str]) -> Sequence[Vector]:
    vectors = await embedder.embed(texts)
    if len(vectors) != len(texts):
        raise ValueError(f"it answers {len(texts)} texts with {len(vectors)} vectors")
    return vectors


async def _embed_again(embedder: Embedder, text: str) -> Vector | None:
    """Return the vector of a text that failed while the embedder answers; None if it fails again. One failure may be an
    outage of a moment, and a refused text is not asked for any more."""
    try:
        (vector,) = await _embed(embedder, [text])
        return vector
    except Exception as error:
        if getattr(error, "fault", "") in OF_THE_VENDOR:
            raise
        said = "the embedder %s refused a text of %d characters, which only words find: %s"
        _log.warning(said, embedder.name, len(text), error)
        return None
