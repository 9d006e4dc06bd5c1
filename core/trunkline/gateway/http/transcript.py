"""OpenAI's transcripts as our messages, and the other way round. Pure functions; what cannot be done is refused."""

from collections.abc import Sequence

import msgspec

from trunkline.errors import ErrorCode
from trunkline.gateway.faults import refusal
from trunkline.gateway.http.openai_schemas import (
    CallOut,
    ChatRequest,
    CompletionDetails,
    FunctionOut,
    MessageIn,
    PromptDetails,
    ToolIn,
    UsageOut,
)
from trunkline.messages.conversation import Message, Role, ToolCall, Usage
from trunkline.messages.gateway import SendMessage
from trunkline.messages.tools import ToolSchema
from trunkline.messages.turn import FinishReason
from trunkline_bus import new_id

FINISH: dict[FinishReason, str] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "cancelled": "stop",
    "stopped": "stop",
    "error": "stop",
}


def sent_message(chat: ChatRequest, conversation: str | None, client_id: str | None) -> SendMessage:
    """The request as a message.

    In a ``conversation`` only what is new counts: the last message of the user, or the results of the client's
    tools, for which the transcript has to come along. Without one the whole transcript counts.
    """
    _check(chat)
    block, _, model = chat.model.partition(":")
    messages = [_message(one) for one in chat.messages]
    last = messages[-1]
    if last.role not in ("user", "tool"):
        raise refusal(ErrorCode.INVALID_REQUEST, "The last message is the user's or a tool's.")
    history = tuple(messages[:-1] if last.role == "user" else messages)
    stored = conversation is not None and last.role == "user"
    return SendMessage(
        content=last.content if last.role == "user" else "",
        block=block or None,
        conversation=conversation,
        client_id=client_id,
        history=None if stored else history,
        client_tools=_tools(chat),
        model=model or None,
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        temperature=chat.temperature,
    )


def _check(chat: ChatRequest) -> None:
    if not chat.messages:
        raise refusal(ErrorCode.INVALID_REQUEST, "messages is empty.")
    if chat.n not in (None, 1):
        raise refusal(ErrorCode.INVALID_REQUEST, "There is one choice; n is 1.")
    if (chat.response_format or {}).get("type", "text") != "text":
        raise refusal(ErrorCode.INVALID_REQUEST, "response_format is text.")
    if chat.tool_choice not in (None, "auto", "none"):
        raise refusal(ErrorCode.INVALID_REQUEST, "tool_choice is auto or none.")
    if chat.temperature is not None and not 0 <= chat.temperature <= 2:
        raise refusal(ErrorCode.INVALID_REQUEST, "temperature is from 0 to 2.")
    if any(limit is not None and limit < 1 for limit in (chat.max_tokens, chat.max_completion_tokens)):
        raise refusal(ErrorCode.INVALID_REQUEST, "max_tokens is 1 or more.")


def _message(given: MessageIn) -> Message:
    role: Role = "system" if given.role == "developer" else given.role
    if role == "tool" and not given.tool_call_id:
        raise refusal(ErrorCode.INVALID_REQUEST, "A tool's message names its tool_call_id.")
    return Message(
        id=new_id("msg"),
        role=role,
        content=_content(given),
        name=given.name,
        tool_call_id=given.tool_call_id if role == "tool" else None,
        tool_calls=tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=_arguments(call.function.arguments))
            for call in given.tool_calls or ()
        ),
    )


def _content(given: MessageIn) -> str:
    if given.content is None or isinstance(given.content, str):
        return given.content or ""
    if any(part.type != "text" for part in given.content):
        raise refusal(ErrorCode.INVALID_REQUEST, "Only text is understood.")
    return "".join(part.text for part in given.content)


def _arguments(text: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, object])
    except msgspec.DecodeError as error:
        raise refusal(ErrorCode.INVALID_REQUEST, "A call's arguments are a JSON object.") from error


def _tools(chat: ChatRequest) -> tuple[ToolSchema, ...]:
    return () if chat.tool_choice == "none" else tuple(map(_tool, _functions(chat.tools or ())))


def _functions(tools: Sequence[ToolIn]) -> Sequence[ToolIn]:
    if any(tool.type != "function" or tool.function is None for tool in tools):
        raise refusal(ErrorCode.INVALID_REQUEST, "A tool is a function.")
    return tools


def _tool(tool: ToolIn) -> ToolSchema:
    assert tool.function is not None
    return ToolSchema(
        name=tool.function.name,
        description=tool.function.description or "",
        parameters=tool.function.parameters or {"type": "object", "properties": {}},
    )


def call_out(call: ToolCall, index: int | None) -> CallOut:
    """A call for the client to run."""
    arguments = msgspec.json.encode(call.arguments).decode()
    return CallOut(
        id=call.id, type="function", index=index, function=FunctionOut(name=call.name, arguments=arguments)
    )


def usage_out(usage: Usage) -> UsageOut:
    """Tokens as OpenAI names them."""
    return UsageOut(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=usage.cached_tokens),
        completion_tokens_details=CompletionDetails(reasoning_tokens=usage.reasoning_tokens),
    )
