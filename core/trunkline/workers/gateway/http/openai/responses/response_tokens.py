"""``POST /v1/responses/input_tokens``: an estimate of the tokens of an input.

Counted is what a client would send and the conversation that it would continue. What the block adds to it is not: its
instructions, tools and memory. No vendor is asked.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import GetConversation
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.token_estimate import estimate_tokens
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.openai.chat_completions import check_model
from trunkline.workers.gateway.http.openai.constraints import parse_response_format, parse_tools
from trunkline.workers.gateway.http.openai.content import file_ids
from trunkline.workers.gateway.http.openai.responses.response_input import parse_items
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    ConversationIn,
    InputItem,
    ReasoningIn,
    TextIn,
)
from trunkline.workers.gateway.http.openai.responses.response_turns import (
    find_previous,
    input_contents,
    messages_through,
)
from trunkline.workers.gateway.http.openai.schemas import FullStruct, Items, Parts, ToolIn
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.schema_base import In
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.uploaded_files import load_files
from trunkline_bus import new_id


class CountInputTokens(In, frozen=True, kw_only=True):
    """``POST /v1/responses/input_tokens``"""

    model: str | None = None
    input: str | Annotated[list[InputItem], Items] | None = None
    instructions: str | None = None
    tools: Annotated[list[ToolIn], Parts] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: TextIn | None = None
    reasoning: ReasoningIn | None = None
    truncation: Literal["auto", "disabled"] | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationIn | None = None


class InputTokens(FullStruct, frozen=True, kw_only=True):
    """The estimated number of tokens."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


async def count_input_tokens(request: Request) -> Response:
    """``POST /v1/responses/input_tokens``"""
    asked = await read_json(request, CountInputTokens)
    await check_model(request, (asked.model or "").partition(":")[0] or None)
    items = asked.input if asked.input is not None else []
    said = parse_items(items, await load_files(request, file_ids(input_contents(items))))
    format = asked.text.format if asked.text else None
    messages = (*_instructions(asked.instructions), *await _history(request, asked), *said)
    described = ModelRequest(
        messages=messages,
        tools=parse_tools(asked.tools or ()),
        response_format=parse_response_format(format, ("text", "format")),
    )
    return json_response(InputTokens(input_tokens=estimate_tokens(described)))


ROUTES = (
    ScopedRoute("/v1/responses/input_tokens", count_input_tokens, methods=["POST"], scope=TokenScope.READ),
)


def _instructions(text: str | None) -> tuple[Message, ...]:
    return (Message(id=new_id("msg"), role="system", content=text),) if text else ()


async def _history(request: Request, asked: CountInputTokens) -> Sequence[Message]:
    """Return the messages of the conversation that the input would continue."""
    named = asked.conversation
    if asked.previous_response_id is not None and named is not None:
        raise InvalidField(
            ("previous_response_id",), "Send either previous_response_id or conversation, not both."
        )
    previous = await find_previous(request, asked.previous_response_id, {})
    if previous is not None:
        return await messages_through(request, previous)
    if named is None:
        return ()
    id = named.id if isinstance(named, ConversationIn) else named
    command = GetConversation(conversation=id, include_tools=True)
    return (await services_of(request).conversations.view(command, sender_of(request))).messages
