"""``POST /v1/responses/compact``: a long input, or a conversation, as its user messages and one compaction item.

The item is opaque to clients, which send it back as input in place of what it stands for. It holds a summary that the
block's model wrote, in base64. It is not encrypted: it tells a client nothing that it did not send or receive.
"""

import time
from collections.abc import Iterable
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline._util.untrusted_text import wrap_context
from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.models.client import BlockCompleter
from trunkline.errors import CompletionError
from trunkline.workers.gateway.errors import InvalidField, error_code, refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.openai import check_model
from trunkline.workers.gateway.http.openai_schemas import FullStruct
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.response_builder import usage_of
from trunkline.workers.gateway.http.response_input import encode_summary, input_items, parse_items
from trunkline.workers.gateway.http.response_schemas import CompactRequest, InputItemOut, ResponseUsage
from trunkline.workers.gateway.http.response_turns import find_previous
from trunkline.workers.gateway.http.responses import json_response
from trunkline_bus import new_id

PURPOSE = "summary"
MAX_TOKENS = 2_000
TIMEOUT = 300.0
INSTRUCTIONS = (
    "Summarise the conversation for yourself: you will continue it from your summary alone. Keep every fact, decision, "
    "name, number, open question and promise. Write no introduction."
)


class CompactionItem(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """The item that stands for a conversation. ``encrypted_content`` is opaque."""

    id: str
    encrypted_content: str


class CompactedResponse(FullStruct, frozen=True, kw_only=True):
    """A compacted conversation: its user messages, then what stands for everything else."""

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: tuple[InputItemOut | CompactionItem, ...]
    usage: ResponseUsage


async def compact(request: Request) -> Response:
    """``POST /v1/responses/compact``"""
    asked = await read_json(request, CompactRequest)
    block, _, model = asked.model.partition(":")
    await check_model(services_of(request).blocks, block or None)
    messages = await _messages(request, asked)
    if not messages:
        raise InvalidField(("input",), "There is nothing to compact.")
    bus, default = services_of(request).bus, services_of(request).blocks.default
    completer = BlockCompleter(bus, block or default, actor=sender_of(request).identity.id)
    try:
        summary = await completer.complete(
            _prompt(messages, asked.instructions), purpose=PURPOSE, model=model or None,
            max_tokens=MAX_TOKENS, timeout=TIMEOUT,
        )  # fmt: skip
    except CompletionError as error:
        raise refusal(error_code(error.code)) from error
    said = tuple(input_items(one for one in messages if one.role == "user"))
    item = CompactionItem(id=new_id("cmp"), encrypted_content=encode_summary(summary.text))
    return json_response(
        CompactedResponse(
            id=new_id("resp"),
            created_at=int(time.time()),
            output=(*said, item),
            usage=usage_of(summary.usage),
        )
    )


ROUTES = (Route("/v1/responses/compact", compact, methods=["POST"]),)


async def _messages(request: Request, asked: CompactRequest) -> list[Message]:
    items = [] if asked.input is None else parse_items(asked.input, {})
    previous = await find_previous(request, asked.previous_response_id, {})
    if previous is None:
        return items
    load = LoadConversation(block=previous.request.block, conversation=previous.request.conversation)
    stored = await services_of(request).conversations.load(load)
    return [*stored.messages, *items]


def _prompt(messages: Iterable[Message], instructions: str | None) -> list[Message]:
    """Return the question. The conversation is data in it, so that no message of it is answered or obeyed."""
    lines = "\n\n".join(f"{one.role}: {one.content}" for one in messages if one.content)
    asked = "\n\n".join(filter(None, (INSTRUCTIONS, instructions)))
    return [
        Message(id=new_id("msg"), role="system", content=asked),
        Message(id=new_id("msg"), role="user", content=wrap_context("conversation", lines)),
    ]
