"""The supported part of OpenAI's schemas: chat completions, models and errors.

Output has no undocumented fields. On input unknown fields are ignored, and options that are not supported are
refused.
"""

from typing import Annotated, Any, Literal

import msgspec

from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.schemas.schema_base import SOME, In
from trunkline.workers.gateway.queue_limiter import QueueFull

# Requests ----------------------------------------------------------------------------------------------------

Items = msgspec.Meta(max_length=10_000)
"""The largest number of messages or items of a request. More would hold up all other requests while they are read."""

Parts = msgspec.Meta(max_length=1_000)
"""The largest number of parts of a message, of its calls, and of a client's tools."""


class ImageUrl(In, frozen=True, kw_only=True):
    """An image, as a ``data:`` URL."""

    url: str


class FileIn(In, frozen=True, kw_only=True):
    """A file: the id of an uploaded file, or base64 data or a ``data:`` URL with a name."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class ContentPart(FileIn, frozen=True, kw_only=True):
    """A part of a message's content: text, an image or a file.

    Chat completions have the types ``text``, ``image_url`` and ``file``, the Responses API has ``input_text``,
    ``output_text``, ``input_image`` and ``input_file``.
    """

    type: str
    text: str = ""
    refusal: str = ""
    image_url: str | ImageUrl | None = None
    file: FileIn | None = None
    file_url: str | None = None


class FunctionCall(In, frozen=True, kw_only=True):
    """A call as the model wrote it; ``arguments`` is JSON text."""

    name: str
    arguments: str = ""


class CallIn(In, frozen=True, kw_only=True):
    """A tool call of an earlier assistant message."""

    id: str
    function: FunctionCall
    type: str = "function"


class MessageIn(In, frozen=True, kw_only=True):
    """A message of the transcript."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[ContentPart], Parts] | None = None
    name: str | None = None
    tool_calls: Annotated[list[CallIn], Parts] | None = None
    tool_call_id: str | None = None


class FunctionIn(In, frozen=True, kw_only=True):
    """A tool that the client runs itself."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolIn(In, frozen=True, kw_only=True):
    """A tool of the client. Chat completions have the function in ``function``, the Responses API in the tool
    itself."""

    type: str
    function: FunctionIn | None = None
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class StreamOptions(In, frozen=True, kw_only=True):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(In, frozen=True, kw_only=True):
    """``POST /v1/chat/completions``"""

    model: str
    messages: Annotated[list[MessageIn], Items, SOME]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolIn], Parts] | None = None
    tool_choice: Any = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    n: int | None = None
    response_format: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


# Responses ---------------------------------------------------------------------------------------------------


class FullStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of schemas in which every field is always present; OpenAI's clients expect null."""


class SparseStruct(FullStruct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of schemas that leave out fields at their default."""


class FunctionOut(SparseStruct, frozen=True, kw_only=True):
    """A call's function; a stream sends it in one piece."""

    name: str
    arguments: str


class CallOut(SparseStruct, frozen=True, kw_only=True):
    """A tool call for the client to run; ``index`` is only set in a stream."""

    id: str
    function: FunctionOut
    type: str
    index: int | None = None


class MessageOut(FullStruct, frozen=True, kw_only=True):
    """The answer."""

    role: Literal["assistant"]
    content: str | None
    refusal: None = None


class MessageWithCalls(MessageOut, frozen=True, kw_only=True):
    """The answer, with calls for the client to run."""

    tool_calls: tuple[CallOut, ...]


class Delta(SparseStruct, frozen=True, kw_only=True):
    """The part of the answer that a chunk adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: tuple[CallOut, ...] = ()


class CompletionChoice(FullStruct, frozen=True, kw_only=True):
    """The only choice."""

    index: int
    message: MessageOut
    finish_reason: str
    logprobs: None = None


class CompletionChunkChoice(FullStruct, frozen=True, kw_only=True):
    """The only choice of a chunk."""

    index: int
    delta: Delta
    finish_reason: str | None = None
    logprobs: None = None


class PromptDetails(FullStruct, frozen=True, kw_only=True):
    """The cached part of the prompt's tokens."""

    cached_tokens: int


class CompletionDetails(FullStruct, frozen=True, kw_only=True):
    """The reasoning part of the answer's tokens."""

    reasoning_tokens: int


class UsageOut(FullStruct, frozen=True, kw_only=True):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class ChatCompletion(FullStruct, frozen=True, kw_only=True):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: UsageOut


class ChatCompletionChunk(FullStruct, frozen=True, kw_only=True):
    """A piece of an answer."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: tuple[CompletionChunkChoice, ...]


class ChatCompletionChunkWithUsage(ChatCompletionChunk, frozen=True, kw_only=True):
    """A piece of an answer for a client that asked for usage; ``usage`` is null in all but the last."""

    usage: UsageOut | None


class Model(FullStruct, frozen=True, kw_only=True):
    """A block, as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(FullStruct, frozen=True, kw_only=True):
    """The blocks, as models."""

    object: Literal["list"]
    data: tuple[Model, ...]


class ErrorDetail(FullStruct, frozen=True, kw_only=True):
    """The details of an error: ``code`` is one of the fixed codes, or OpenAI's own code for the same
    error."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorObject(FullStruct, frozen=True, kw_only=True):
    """Every error under ``/v1``."""

    error: ErrorDetail


_TYPES = {
    ErrorCode.INVALID_REQUEST: "invalid_request_error",
    ErrorCode.UNAUTHORIZED: "authentication_error",
    ErrorCode.FORBIDDEN: "permission_error",
    ErrorCode.NOT_FOUND: "invalid_request_error",
    ErrorCode.CONFLICT: "invalid_request_error",
    ErrorCode.TOO_LARGE: "invalid_request_error",
    ErrorCode.RATE_LIMITED: "rate_limit_error",
    ErrorCode.CONTEXT_OVERFLOW: "invalid_request_error",
    ErrorCode.OVER_BUDGET: "insufficient_quota",
    ErrorCode.NOT_SENT: "permission_error",
}

_CODES = {
    ErrorCode.UNAUTHORIZED: "invalid_api_key",
    ErrorCode.CONTEXT_OVERFLOW: "context_length_exceeded",
    ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
    ErrorCode.OVER_BUDGET: "insufficient_quota",
}


def error_object(
    code: ErrorCode,
    *,
    param: str | None = None,
    named: str | None = None,
    wrong: InvalidField | QueueFull | None = None,
    detail: str = "",
    message: str = "",
) -> ErrorObject:
    """Return an error in OpenAI's schema.

    The message is the code's fixed sentence with the field and reason of ``wrong`` or with ``detail``, since clients
    show only the message; ``message`` replaces it. ``named``, or that of ``wrong``, overrides the code
    that clients evaluate.
    """
    said = wrong.reason if wrong is not None else detail
    if isinstance(wrong, InvalidField):
        param, named = wrong.param or None, named or wrong.named
        said = f"{wrong.param}: {said}" if wrong.param else said
    why = f" {said}" if said else ""
    return ErrorObject(
        error=ErrorDetail(
            message=message or f"{FIXED_SENTENCES[code]}{why}",
            type=_TYPES.get(code, "api_error"),
            param=param,
            code=named or _CODES.get(code, code.value),
        )
    )
