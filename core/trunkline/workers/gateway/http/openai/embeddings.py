"""OpenAI's embeddings over the abilities of a block's model."""

import base64
import struct
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.models.ability_messages import MAX_TEXTS
from trunkline.errors import CompletionError
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai.ability_requests import block_abilities, failed_ability
from trunkline.workers.gateway.http.openai.ability_schemas import (
    EmbeddingList,
    EmbeddingOut,
    EmbeddingsRequest,
    EmbeddingUsageOut,
)
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

TOKENS = "Tokens are not accepted, because each model has its own: send the text."


async def create_embeddings(request: Request) -> Response:
    """``POST /v1/embeddings``"""
    asked = await read_json(request, EmbeddingsRequest)
    texts = _texts(asked.input)
    abilities, model = await block_abilities(request, asked.model, "\n".join(texts))
    try:
        found = await abilities.embed(texts, model=model, dimensions=asked.dimensions)
    except CompletionError as error:
        return failed_ability(request, error)
    encode = _base64 if asked.encoding_format == "base64" else tuple
    data = tuple(
        EmbeddingOut(object="embedding", index=number, embedding=encode(vector))
        for number, vector in enumerate(found.vectors)
    )
    tokens = found.usage.input_tokens
    usage = EmbeddingUsageOut(prompt_tokens=tokens, total_tokens=tokens)
    return json_response(EmbeddingList(object="list", data=data, model=asked.model, usage=usage))


ROUTES = (ScopedRoute("/v1/embeddings", create_embeddings, methods=["POST"], scope=TokenScope.CHAT),)


def _texts(given: str | list[object]) -> list[str]:
    """Return the texts. Raises InvalidField for an empty text, too many texts, or tokens in place of text."""
    items = [given] if isinstance(given, str) else given
    if not items:
        raise InvalidField(("input",), "There is no text.")
    if len(items) > MAX_TEXTS:
        raise InvalidField(("input",), f"At most {MAX_TEXTS} texts are embedded at once.")
    texts: list[str] = []
    for number, item in enumerate(items):
        at = ("input",) if isinstance(given, str) else ("input", number)
        if not isinstance(item, str):
            raise InvalidField(at, TOKENS if isinstance(item, int | list) else "It is not a text.")
        if not item:
            raise InvalidField(at, "The text is empty.")
        texts.append(item)
    return texts


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
