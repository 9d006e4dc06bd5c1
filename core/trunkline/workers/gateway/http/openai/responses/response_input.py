"""Conversion between the items of the Responses API and Trunkline's messages. Pure. Unsupported items are refused."""

import binascii
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from trunkline._util.untrusted_text import wrap_context
from trunkline.contracts.conversations.messages import DocumentFile, Message, Role, ToolCall
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.messages import ResponseRequest
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai.constraints import (
    check_sampling,
    model_parameters,
    parse_response_format,
    parse_tool_choice,
    parse_tools,
    permitted_tools,
)
from trunkline.workers.gateway.http.openai.content import Path, parse_content, parse_text
from trunkline.workers.gateway.http.openai.messages import (
    arguments_text,
    is_empty,
    parse_arguments,
    with_new_messages,
)
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    CreateResponse,
    FunctionCallItem,
    FunctionCallOutput,
    InputFile,
    InputImage,
    InputItem,
    InputItemOut,
    InputMessage,
    InputText,
    OutputItem,
    OutputMessage,
    OutputText,
)
from trunkline.workers.gateway.http.openai.schemas import ToolIn
from trunkline_bus import new_id

ROLES: Mapping[str | None, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
ITEM_RULE = "It is message, function_call, function_call_output, reasoning or compaction."
UNKNOWN_ITEM = "There is no item with this id. Send the item itself."
INCLUDABLE = frozenset(
    {
        *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
        *("message.input_image.image_url", "computer_call_output.output.image_url"),
        *("code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs"),
    }
)
"""The values of ``include`` that OpenAI knows. They are accepted; a response of Trunkline has none of these."""

SUMMARY_MARK = "trunkline-summary-1:"
"""The beginning of a compaction item's content: what it is and in which version."""

MAX_METADATA, MAX_METADATA_KEY, MAX_METADATA_VALUE = 16, 64, 512


def check_options(request: CreateResponse) -> None:
    """Refuse options that are not supported or exclude each other. Raises InvalidField."""
    check_sampling(
        request.temperature,
        request.top_p,
        max_output_tokens=request.max_output_tokens,
        max_tool_calls=request.max_tool_calls,
    )
    if request.prompt is not None:
        raise InvalidField(("prompt",), "There are no stored prompts. Send instructions.")
    if request.previous_response_id is not None and request.conversation is not None:
        raise InvalidField(
            ("previous_response_id",), "Send either previous_response_id or conversation, not both."
        )
    if request.background and request.store is False:
        raise InvalidField(("background",), "A response in the background is stored: leave out store.")
    for number, value in enumerate(request.include or ()):
        if value not in INCLUDABLE:
            raise InvalidField(("include", number), f"It is one of {', '.join(sorted(INCLUDABLE))}.")
    _check_metadata(request.metadata or {})


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    if len(metadata) > MAX_METADATA:
        raise InvalidField(("metadata",), f"It has at most {MAX_METADATA} keys.")
    for key, value in metadata.items():
        at = ("metadata", key[:MAX_METADATA_KEY])
        if not isinstance(value, str):
            raise InvalidField(at, "It is a text.")
        if len(key) > MAX_METADATA_KEY or len(value) > MAX_METADATA_VALUE:
            limits = f"at most {MAX_METADATA_KEY} characters, and its value {MAX_METADATA_VALUE}"
            raise InvalidField(at, f"A key has {limits}.")


def parse_input(request: CreateResponse, files: Mapping[str, DocumentFile]) -> list[Message]:
    """Return the messages of the input. ``files`` are the uploaded files by their ids. Raises InvalidField for an input
    that ends with neither a message of a person nor a tool's output."""
    messages = parse_items(request.input, files)
    if not messages:
        raise InvalidField(("input",), "The input has no message.")
    last = messages[-1]
    if last.role not in ("user", "tool"):
        at: Path = ("input",) if isinstance(request.input, str) else ("input", len(request.input) - 1)
        raise InvalidField(at, "The last item is the user's message or a function_call_output.")
    if last.role == "user" and is_empty(last):
        raise InvalidField(("input",), "The message has no content.")
    return messages


def parse_items(items: str | Sequence[InputItem], files: Mapping[str, DocumentFile]) -> list[Message]:
    """Return the messages of any input. Raises InvalidField."""
    if isinstance(items, str):
        items = [InputItem(role="user", content=items)]
    return list(_grouped(_messages(items, files)))


def _messages(items: Sequence[InputItem], files: Mapping[str, DocumentFile]) -> Iterator[Message]:
    for number, item in enumerate(items):
        at: Path = ("input", number)
        match item.type:
            case "message":
                yield _message(item, files, at)
            case "function_call":
                yield _call(item, at)
            case "function_call_output":
                yield _output(item, at)
            case "compaction":
                yield _summary(item, at)
            case "reasoning":
                continue  # what a vendor requires back is in the journal, and only for the running turn (ADR 62)
            case "item_reference":
                raise InvalidField((*at, "id"), UNKNOWN_ITEM)
            case _:
                raise InvalidField((*at, "type"), ITEM_RULE)


def _message(item: InputItem, files: Mapping[str, DocumentFile], at: Path) -> Message:
    role = ROLES.get(item.role)
    if role is None:
        raise InvalidField((*at, "role"), "It is user, assistant, system or developer.")
    content = parse_content(item.content, files, (*at, "content"))
    if role != "user" and (content.images or content.documents):
        raise InvalidField((*at, "content"), "Only a person's message has images and files.")
    return Message(
        id=new_id("msg"),
        role=role,
        content=content.text,
        images=tuple(content.images),
        documents=tuple(content.documents),
    )


def _call(item: InputItem, at: Path) -> Message:
    if not item.call_id or not item.name:
        raise InvalidField(at, "A function_call has a call_id and a name.")
    call = ToolCall(id=item.call_id, name=item.name, arguments=parse_arguments(item.arguments or ""))
    return Message(id=new_id("msg"), role="assistant", content="", tool_calls=(call,))


def _output(item: InputItem, at: Path) -> Message:
    if not item.call_id:
        raise InvalidField((*at, "call_id"), "A tool's output names the call.")
    text = parse_text(item.output, (*at, "output"))
    # A client's tool does not read Trunkline's memory, so its output is not derived.
    return Message(id=new_id("msg"), role="tool", content=text, tool_call_id=item.call_id, derived=False)


def encode_summary(summary: str) -> str:
    """Return the content of a compaction item, which is opaque to clients."""
    return urlsafe_b64encode((SUMMARY_MARK + summary).encode()).decode()


def _summary(item: InputItem, at: Path) -> Message:
    """Return the message that stands for a compacted conversation, as data."""
    wrong = InvalidField((*at, "encrypted_content"), "It is no compaction of this API.")
    try:
        text = urlsafe_b64decode((item.encrypted_content or "").encode()).decode()
    except (binascii.Error, ValueError) as error:
        raise wrong from error
    if not text.startswith(SUMMARY_MARK):
        raise wrong
    summary = wrap_context("summary of the conversation so far", text.removeprefix(SUMMARY_MARK))
    return Message(id=new_id("msg"), role="user", content=summary)


def _grouped(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages with calls joined to the answer before them: one answer is one message with its calls."""
    answer: Message | None = None
    calls: list[ToolCall] = []
    for message in messages:
        if answer is not None and message.role == "assistant" and message.tool_calls:
            calls.extend(message.tool_calls)
            continue
        if answer is not None:
            yield replace(answer, tool_calls=tuple(calls))
            answer = None
        if message.role == "assistant":
            answer, calls = message, list(message.tool_calls)
        else:
            yield message
    if answer is not None:
        yield replace(answer, tool_calls=tuple(calls))


def to_message(request: CreateResponse, messages: Sequence[Message]) -> SendMessage:
    """Return the messages since the last answer as one message. The caller handles the history before it."""
    tools = parse_tools(request.tools or ())
    choice = parse_tool_choice(request.tool_choice, tools)
    text, reasoning = request.text, request.reasoning
    block, _, model = request.model.partition(":")
    send = SendMessage(
        content="",
        block=block or None,
        client_tools=permitted_tools(tools, choice),
        model=model or None,
        max_tokens=request.max_output_tokens,
        temperature=request.temperature,
        parameters=model_parameters(
            request.top_p,
            reasoning.effort if reasoning else None,
            text.verbosity if text else None,
            reasoning.summary if reasoning else None,
        ),
        instructions=request.instructions or "",
        tool_choice=choice if choice.mode == "required" else None,
        response_format=parse_response_format(text.format, ("text", "format")) if text else None,
        response=ResponseRequest(
            created_at=int(time.time()),
            stored=request.store is not False,
            background=bool(request.background),
            previous=request.previous_response_id,
            parameters=response_parameters(request),
        ),
    )
    return with_new_messages(send, messages)


def response_parameters(request: CreateResponse) -> dict[str, Any]:
    """Return the parameters of the request that its response repeats; those with their defaults are left out."""
    named: dict[str, Any] = {
        "model": request.model,
        "instructions": request.instructions,
        "tools": [_tool_out(tool) for tool in request.tools or ()] or None,
        "tool_choice": request.tool_choice,
        "parallel_tool_calls": request.parallel_tool_calls,
        "max_tool_calls": request.max_tool_calls,
        "text": _text_out(request),
        "reasoning": _reasoning_out(request),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata,
        "truncation": request.truncation,
        "user": request.user,
        "safety_identifier": request.safety_identifier,
        "prompt_cache_key": request.prompt_cache_key,
    }
    return {name: value for name, value in named.items() if value is not None}


def _tool_out(tool: ToolIn) -> dict[str, Any]:
    function = tool if tool.function is None else tool.function
    return {
        "type": "function",
        "name": function.name,
        "description": function.description,
        "parameters": function.parameters,
        "strict": tool.strict,
    }


def _text_out(request: CreateResponse) -> dict[str, Any] | None:
    if request.text is None:
        return None
    format = request.text.format or {"type": "text"}
    return {"format": format, "verbosity": request.text.verbosity or "medium"}


def _reasoning_out(request: CreateResponse) -> dict[str, Any] | None:
    if request.reasoning is None:
        return None
    return {"effort": request.reasoning.effort, "summary": request.reasoning.summary}


def output_messages(output: Iterable[OutputItem]) -> list[Message]:
    """Return the messages that a client makes of a response's output, when it sends the output back as input."""
    return parse_items(list(map(sent_back, output)), {})


def sent_back(item: OutputItem) -> InputItem:
    """Return an item of the output as a client sends it back as input."""
    match item:
        case OutputMessage():
            return InputItem(role="assistant", content="".join(part.text for part in item.content))
        case FunctionCallItem():
            return InputItem(
                type="function_call", call_id=item.call_id, name=item.name, arguments=item.arguments
            )
        case _:
            return InputItem(type="reasoning")


def input_items(messages: Iterable[Message]) -> Iterator[InputItemOut]:
    """Yield the items of a response's input."""
    for message in messages:
        match message.role:
            case "tool":
                yield FunctionCallOutput(
                    id=message.id, call_id=message.tool_call_id or "", output=message.content
                )
            case "assistant":
                if message.content:
                    part = OutputText(text=message.content)
                    yield InputMessage(id=message.id, role="assistant", content=(part,))
                yield from (_call_out(message, call) for call in message.tool_calls)
            case role:
                yield InputMessage(id=message.id, role=role, content=tuple(_parts(message)))


def _call_out(message: Message, call: ToolCall) -> FunctionCallItem:
    return FunctionCallItem(
        id=f"fc_{message.id}",
        status="completed",
        call_id=call.id,
        name=call.name,
        arguments=arguments_text(call),
    )


def _parts(message: Message) -> Iterator[InputText | InputImage | InputFile]:
    if message.content or not message.attachments:
        yield InputText(text=message.content)
    for file in message.attachments:
        yield InputImage() if file.media_type.startswith("image/") else InputFile(filename=file.name)
