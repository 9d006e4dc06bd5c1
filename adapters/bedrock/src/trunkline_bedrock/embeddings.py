"""The bodies of InvokeModel for vectors: Amazon Titan and Cohere. No I/O."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trunkline.api.model import model_error
from trunkline_bedrock.bedrock_models import base_model

DEFAULT_EMBEDDING_MODEL = "amazon.titan-embed-text-v2:0"
"""The model of vectors when none is named."""

COHERE, TITAN = "cohere.embed-", "amazon.titan-embed-text-"
COHERE_BATCH = 96
"""The largest number of texts in one request to a model of Cohere. Titan takes one text."""


class _EmbeddingsByType(msgspec.Struct):
    vectors: list[list[float]] = msgspec.field(name="float", default_factory=list)


class _EmbeddingAnswer(msgspec.Struct):
    """The answer of Titan (``embedding``) or of Cohere (``embeddings``)."""

    embedding: list[float] | None = None
    embeddings: list[list[float]] | _EmbeddingsByType | None = None


def batches(texts: Sequence[str], model: str) -> Iterator[Sequence[str]]:
    """Yield the texts of each request.

    Raises:
        ModelError: the adapter does not know the model's bodies.
    """
    name = base_model(model)
    if not name.startswith((COHERE, TITAN)):
        raise model_error(
            "refused",
            f"no vectors by {model}: Bedrock's models of vectors are {TITAN}… and {COHERE}…",
        )
    size = COHERE_BATCH if name.startswith(COHERE) else 1
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def embedding_body(texts: Sequence[str], model: str) -> dict[str, Any]:
    """Return the body for one request."""
    if base_model(model).startswith(COHERE):
        return {"texts": list(texts), "input_type": "search_document"}
    return {"inputText": texts[0]}


def read_vectors(content: bytes) -> list[list[float]]:
    """Return the vectors of an answer. Raise msgspec.MsgspecError if it has not the vendor's form."""
    answer = msgspec.json.decode(content, type=_EmbeddingAnswer)
    if answer.embedding is not None:
        return [answer.embedding]
    if isinstance(answer.embeddings, _EmbeddingsByType):
        return answer.embeddings.vectors
    return answer.embeddings or []
