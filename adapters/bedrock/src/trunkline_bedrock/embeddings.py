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


TITAN_V2, COHERE_V4 = f"{TITAN}v2", f"{COHERE}v4"
"""The models whose vectors can have different lengths."""

TOKEN_COUNT_HEADER = "x-amzn-bedrock-input-token-count"
"""The header of an answer with the number of tokens that are billed."""

Vectors = list[tuple[float, ...]]


class _EmbeddingsByType(msgspec.Struct):
    vectors: Vectors = msgspec.field(name="float", default_factory=list)


class _EmbeddingAnswer(msgspec.Struct):
    """The answer of Titan (``embedding``) or of Cohere (``embeddings``)."""

    embedding: tuple[float, ...] | None = None
    embeddings: Vectors | _EmbeddingsByType | None = None
    tokens: int = msgspec.field(name="inputTextTokenCount", default=0)


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


def embedding_body(texts: Sequence[str], model: str, dimensions: int | None = None) -> dict[str, Any]:
    """Return the body for one request.

    Raises:
        ModelError: the vectors of this model have one length only.
    """
    name = base_model(model)
    if dimensions is not None and not name.startswith((TITAN_V2, COHERE_V4)):
        raise model_error("refused", f"the vectors of {model} have one length; leave dimensions out")
    if name.startswith(COHERE):
        body: dict[str, Any] = {"texts": list(texts), "input_type": "search_document"}
        return body if dimensions is None else {**body, "output_dimension": dimensions}
    return {"inputText": texts[0], **({} if dimensions is None else {"dimensions": dimensions})}


def read_vectors(content: bytes) -> tuple[Vectors, int]:
    """Return the vectors of an answer, and the number of tokens if it has one. Raise msgspec.MsgspecError if it has
    not the vendor's form.
    """
    answer = msgspec.json.decode(content, type=_EmbeddingAnswer)
    if answer.embedding is not None:
        return [answer.embedding], answer.tokens
    if isinstance(answer.embeddings, _EmbeddingsByType):
        return answer.embeddings.vectors, answer.tokens
    return answer.embeddings or [], answer.tokens
