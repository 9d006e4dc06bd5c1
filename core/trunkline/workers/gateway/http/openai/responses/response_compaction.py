"""``POST /v1/responses/compact``: a long input, or a conversation, as its user messages and one compaction item.

The item is opaque to clients, which send it back as input in place of what it stands for. It holds a summary that the
block's model wrote, in base64. It is not encrypted: it tells a client nothing that it did not send or receive.
"""

import time
from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from trunkline._util.untrusted_text import wrap_context
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.client import BlockCompleter
from trunkline.errors import CompletionError, ErrorCode
from trunkline.workers.gateway.errors import InvalidField, error_code, refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.openai.chat_completions import check_model
from trunkline.workers.gateway.http.openai.content import file_ids
from trunkline.workers.gateway.http.openai.responses.response_builder import usage_of
from trunkline.workers.gateway.http.openai.responses.response_input import (
    encode_summary,
    input_items,
    parse_items,
)
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    CompactRequest,
    InputItemOut,
    ResponseUsage,
)
from trunkline.workers.gateway.http.openai.responses.response_turns import (
    find_previous,
    input_contents,
    messages_through,
)
from trunkline.workers.gateway.http.openai.schemas import FullStruct
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.uploaded_files import load_files
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
    services, sender = services_of(request), sender_of(request)
    identity = sender.identity
    await check_model(request, block or None)
    await services.messages.check_model_choice(model, block or services.blocks.default, sender)
    messages = await _messages(request, asked, block or services.blocks.default)
    if not messages:
        raise InvalidField(("input",), "There is nothing to compact.")
    prompt = _prompt(messages, asked.instructions)
    said = SendMessage(content="\n\n".join(one.content for one in prompt), block=block or None)
    await services.messages.admit(said, identity)
    bus, default = services.bus, services.blocks.default
    completer = BlockCompleter(bus, block or default, actor=identity.id)
    try:
        summary = await completer.complete(
            prompt, purpose=PURPOSE, model=model or None,
            max_tokens=MAX_TOKENS, timeout=TIMEOUT,
        )  # fmt: skip
    except CompletionError as error:
        raise refusal(error_code(error.code)) from error
    kept = tuple(input_items(_without_files(one) for one in messages if one.role == "user"))
    item = CompactionItem(id=new_id("cmp"), encrypted_content=encode_summary(summary.text))
    return json_response(
        CompactedResponse(
            id=new_id("resp"),
            created_at=int(time.time()),
            output=(*kept, item),
            usage=usage_of(summary.usage),
        )
    )


ROUTES = (ScopedRoute("/v1/responses/compact", compact, methods=["POST"], scope=TokenScope.CHAT),)


async def _messages(request: Request, asked: CompactRequest, block: str) -> list[Message]:
    """Return the messages to compact. Refused with ``conflict`` if the response is of another block: the models of this
    one may not read it."""
    items = (
        []
        if asked.input is None
        else parse_items(asked.input, await load_files(request, file_ids(input_contents(asked.input))))
    )
    previous = await find_previous(request, asked.previous_response_id, {})
    if previous is None:
        return items
    if previous.request.block != block:
        raise refusal(
            ErrorCode.CONFLICT, f"The conversation belongs to the block {previous.request.block!r}."
        )
    return [*await messages_through(request, previous), *items]


def _without_files(message: Message) -> Message:
    """Return the message with the names of its files in place of them: a client sends the items back as they are, and
    an item without the file's content would be refused."""
    names = [file.name for file in message.attachments]
    content = "\n\n".join(filter(None, (message.content, *(f"[attached {name}]" for name in names))))
    return replace(message, content=content, attachments=())


def _prompt(messages: Iterable[Message], instructions: str | None) -> list[Message]:
    """Return the question. The conversation is data in it, so that no message of it is answered or obeyed. Further
    lines of a message are indented, so that no message can seem to be another one."""
    lines = "\n\n".join(f"{one.role}: {_indented(one.content)}" for one in messages if one.content)
    asked = "\n\n".join(filter(None, (INSTRUCTIONS, instructions)))
    return [
        Message(id=new_id("msg"), role="system", content=asked),
        Message(id=new_id("msg"), role="user", content=wrap_context("conversation", lines)),
    ]


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())
