"""Conversion between OpenAI's transcripts and Trunkline's messages. Pure. Unsupported content is refused."""

from collections.abc import Mapping, Sequence

import msgspec

from trunkline.contracts.conversations.messages import (
    RAW_ARGUMENTS,
    DocumentFile,
    Message,
    Role,
    ToolCall,
    Usage,
)
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.messages import FinishReason
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai.constraints import (
    check_sampling,
    model_parameters,
    parse_response_format,
    parse_tool_choice,
    parse_tools,
    permitted_tools,
)
from trunkline.workers.gateway.http.openai.content import parse_content
from trunkline.workers.gateway.http.openai.schemas import (
    CallOut,
    ChatRequest,
    CompletionDetails,
    FunctionOut,
    MessageIn,
    PromptDetails,
    UsageOut,
)
from trunkline_bus import new_id

FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "cancelled": "stop",
    "stopped": "stop",
    "error": "stop",
}


def split_transcript(
    chat: ChatRequest, files: Mapping[str, DocumentFile]
) -> tuple[list[Message], list[Message]]:
    """Return the messages up to the last answer, and those after it. ``files`` are the uploaded files by their ids.
    Raises InvalidField for a transcript that ends with neither a user message nor a tool result."""
    if not chat.messages:
        raise InvalidField(("messages",), "There is no message.")
    messages = [_message(one, files, number) for number, one in enumerate(chat.messages)]
    if messages[-1].role not in ("user", "tool"):
        raise InvalidField(
            ("messages", len(messages) - 1, "role"), "The last message is the user's or a tool's."
        )
    if messages[-1].role == "user" and is_empty(messages[-1]):
        raise InvalidField(("messages", len(messages) - 1, "content"), "The message has no content.")
    return split_after_last_answer(messages)


def split_after_last_answer(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the messages up to the last answer, and those after it."""
    answers = [number for number, message in enumerate(messages, start=1) if message.role == "assistant"]
    at = max(answers, default=0)
    return list(messages[:at]), list(messages[at:])


def is_empty(message: Message) -> bool:
    """Report whether a message of a person has neither text nor files."""
    return not (message.content.strip() or message.images or message.documents)


def to_message(chat: ChatRequest, messages: Sequence[Message]) -> SendMessage:
    """Return the messages since the last answer as one message. The caller handles the history before it."""
    _check(chat)
    tools = parse_tools(chat.tools or (), nested=True)
    choice = parse_tool_choice(chat.tool_choice, tools)
    block, _, model = chat.model.partition(":")
    return with_new_messages(
        SendMessage(
            content="",
            block=block or None,
            client_tools=permitted_tools(tools, choice),
            model=model or None,
            max_tokens=chat.max_completion_tokens or chat.max_tokens,
            temperature=chat.temperature,
            parameters=model_parameters(chat.top_p, chat.reasoning_effort, chat.verbosity),
            tool_choice=choice if choice.mode == "required" else None,
            response_format=parse_response_format(chat.response_format, ("response_format",), nested=True),
        ),
        messages,
    )


def with_new_messages(send: SendMessage, messages: Sequence[Message]) -> SendMessage:
    """Return the message with these messages: the last one of a person is its content, the others precede it."""
    last = messages[-1]
    if last.role != "user":
        return msgspec.structs.replace(send, preceding=tuple(messages))
    return msgspec.structs.replace(
        send,
        content=last.content,
        images=last.images,
        documents=last.documents,
        preceding=tuple(messages[:-1]),
    )


def _check(chat: ChatRequest) -> None:
    if chat.n not in (None, 1):
        raise InvalidField(("n",), "There is one choice: it is 1.")
    check_sampling(
        chat.temperature,
        chat.top_p,
        max_tokens=chat.max_tokens,
        max_completion_tokens=chat.max_completion_tokens,
    )


def _message(message: MessageIn, files: Mapping[str, DocumentFile], number: int) -> Message:
    role: Role = "system" if message.role == "developer" else message.role
    if role == "tool" and not message.tool_call_id:
        raise InvalidField(("messages", number, "tool_call_id"), "A tool's message names the call.")
    at = ("messages", number, "content")
    content = parse_content(message.content, files, at)
    if role != "user" and (content.images or content.documents):
        raise InvalidField(at, "Only a person's message has images and files.")
    return Message(
        id=new_id("msg"),
        role=role,
        content=content.text,
        name=message.name,
        tool_call_id=message.tool_call_id if role == "tool" else None,
        derived=False if role == "tool" else None,  # a client's tool does not read Trunkline's memory
        tool_calls=tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=parse_arguments(call.function.arguments))
            for call in message.tool_calls or ()
        ),
        images=tuple(content.images),
        documents=tuple(content.documents),
    )


def parse_arguments(text: str) -> dict[str, object]:
    """Parse arguments as an adapter does: text that is no JSON object is kept as ``RAW_ARGUMENTS``."""
    try:
        arguments = msgspec.json.decode(text.strip() or "{}", type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {RAW_ARGUMENTS: text}
    return {RAW_ARGUMENTS: text} if RAW_ARGUMENTS in arguments else arguments


def call_out(call: ToolCall, index: int | None) -> CallOut:
    """Return a call for the client to run."""
    function = FunctionOut(name=call.name, arguments=arguments_text(call))
    return CallOut(id=call.id, type="function", index=index, function=function)


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of a call as JSON. Arguments that are no JSON object are sent as the model wrote them."""
    written = call.arguments.get(RAW_ARGUMENTS) if len(call.arguments) == 1 else None
    return written if isinstance(written, str) else msgspec.json.encode(call.arguments).decode()


def usage_out(usage: Usage) -> UsageOut:
    """Return the token counts under OpenAI's names."""
    return UsageOut(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=usage.cached_tokens),
        completion_tokens_details=CompletionDetails(reasoning_tokens=usage.reasoning_tokens),
    )
