"""An upper estimate of the tokens of a request, before a vendor counts them. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.tools.messages import ToolSchema

MIN_BYTES_PER_TOKEN = 3
"""Bytes per token in the estimate: fewer than tokenizers need in any common language (about 4 in English), so that the
estimate is rather too high."""

USUAL_BYTES_PER_TOKEN = 4
"""Bytes per token of English text."""

TOKENS_PER_MESSAGE = 8
"""Tokens of a message besides its text."""

TOKENS_PER_IMAGE = 6_000
"""Estimated tokens of an image: more than the providers' documented formulas give for usual sizes (OpenAI 85 and 170 a
tile, Anthropic width times height divided by 750)."""


def estimate_input_tokens(request: ModelRequest) -> int:
    """Return an upper estimate of the request's input tokens: messages, tools, response format and partial
    answer, and the tokens of a recording.
    """
    format = request.response_format
    others = (
        *((tool,) for tool in request.tools),
        *(() if format is None else (format,)),
        *((request.partial,) if request.partial else ()),
    )
    said = estimate_message_tokens(request.messages) + sum(map(_tokens_as_json, others))
    return said + request.audio_tokens


def estimate_tokens(request: ModelRequest) -> int:
    """Return an estimate of the request's input tokens in the middle: with about 4 bytes per token, as in English."""
    return estimate_input_tokens(request) * MIN_BYTES_PER_TOKEN // USUAL_BYTES_PER_TOKEN


def estimate_message_tokens(messages: Sequence[Message]) -> int:
    """Return an upper estimate of the messages' tokens, by their bytes, calls, images and documents."""
    return sum(map(_message_tokens, messages))


def estimate_text_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    return _tokens(len(text.encode(errors="replace")))


def estimate_tool_tokens(tool: ToolSchema) -> int:
    """Return an upper estimate of the tokens of a tool's definition."""
    return _tokens_as_json(tool)


def _message_tokens(message: Message) -> int:
    return (
        estimate_text_tokens(message.content)
        + TOKENS_PER_MESSAGE
        + len(message.images) * TOKENS_PER_IMAGE
        + sum(max(TOKENS_PER_IMAGE, _tokens(len(file.data))) for file in message.documents)
        + sum(map(_tokens_as_json, (*message.tool_calls, *message.reasoning)))
    )


def _tokens_as_json(part: Any) -> int:
    try:
        return _tokens(len(msgspec.json.encode(part)))
    except (
        UnicodeEncodeError,
        TypeError,
        ValueError,
        RecursionError,
    ):  # an adapter escapes what JSON cannot carry
        return _tokens(len(repr(part)))


def _tokens(size: int) -> int:
    return -(-size // MIN_BYTES_PER_TOKEN)
