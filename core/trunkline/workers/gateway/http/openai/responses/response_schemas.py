"""The supported part of OpenAI's Responses API: requests, the response and its items. ``response_events.py`` has the
events.

Output has no undocumented fields. On input unknown fields are ignored, and options that are not supported are
refused.
"""

from typing import Annotated, Any, Literal

import msgspec

from trunkline.workers.gateway.http.openai.schemas import (
    ContentPart,
    FullStruct,
    Items,
    Parts,
    SparseStruct,
    ToolIn,
)
from trunkline.workers.gateway.http.schemas.schema_base import In

# Requests ----------------------------------------------------------------------------------------------------


class InputItem(In, frozen=True, kw_only=True):
    """An item of the input: a message, a call of the client's tool, the call's output, a compaction, the reference of
    an item of a stored response by its ``id``, or reasoning, which is ignored."""

    type: str = "message"
    id: str | None = None
    role: str | None = None
    content: str | Annotated[list[ContentPart], Parts] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | Annotated[list[ContentPart], Parts] | None = None
    encrypted_content: str | None = None


class TextIn(In, frozen=True, kw_only=True):
    """The format of the answer's text, and how long it is."""

    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningIn(In, frozen=True, kw_only=True):
    """The effort of the model's reasoning, and whether the response has a summary of it."""

    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class ConversationIn(In, frozen=True, kw_only=True):
    """The conversation that the response belongs to."""

    id: str


class CreateResponse(In, frozen=True, kw_only=True):
    """``POST /v1/responses``"""

    model: str
    input: str | Annotated[list[InputItem], Items] = ""
    instructions: str | None = None
    tools: Annotated[list[ToolIn], Parts] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: int | None = None
    text: TextIn | None = None
    reasoning: ReasoningIn | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, Any] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    include: list[str] | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationIn | None = None
    stream: bool | None = None
    background: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt: Any = None


class CompactRequest(In, frozen=True, kw_only=True):
    """``POST /v1/responses/compact``"""

    model: str
    input: str | Annotated[list[InputItem], Items] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None


# Items -------------------------------------------------------------------------------------------------------

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    """Text of an answer."""

    text: str
    annotations: tuple[()] = ()
    logprobs: tuple[()] = ()


class InputText(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="input_text"):
    """Text that a client sent."""

    text: str


class InputImage(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="input_image"):
    """An image that a client sent. Its content is not returned."""

    image_url: None = None
    file_id: None = None
    detail: Literal["auto"] = "auto"


class InputFile(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="input_file"):
    """A file that a client sent. Its content is not returned."""

    filename: str


class SummaryText(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="summary_text"):
    """The disclosed reasoning of a model call."""

    text: str


class OutputMessage(SparseStruct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of an answer: the text of one model call, or an approval that the turn waits for.

    ``phase`` is set at the end of the message: ``final_answer`` for the last one.
    """

    id: str
    status: ItemStatus
    role: Literal["assistant"]
    content: tuple[OutputText, ...]
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCallItem(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A call of the client's tool, for the client to run."""

    id: str
    status: ItemStatus
    call_id: str
    name: str
    arguments: str


class ReasoningItem(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    """The disclosed reasoning of a model call."""

    id: str
    status: ItemStatus
    summary: tuple[SummaryText, ...]


OutputItem = OutputMessage | FunctionCallItem | ReasoningItem


class InputMessage(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of the input."""

    id: str
    status: Literal["completed"] = "completed"
    role: Literal["user", "system", "assistant"]
    content: tuple[InputText | InputImage | InputFile | OutputText, ...]


class FunctionCallOutput(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="function_call_output"):
    """The output of the client's tool."""

    id: str
    status: Literal["completed"] = "completed"
    call_id: str
    output: str


InputItemOut = InputMessage | FunctionCallOutput | FunctionCallItem


class InputItemList(FullStruct, frozen=True, kw_only=True):
    """A page of the input of a response."""

    object: Literal["list"] = "list"
    data: tuple[InputItemOut, ...]
    first_id: str | None
    last_id: str | None
    has_more: bool


# The response ------------------------------------------------------------------------------------------------

ResponseStatus = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]


class IncompleteDetails(FullStruct, frozen=True, kw_only=True):
    """Why the response is incomplete: ``max_output_tokens``, ``content_filter``, or ``stopped`` by a person or a
    plugin."""

    reason: str


class ResponseError(FullStruct, frozen=True, kw_only=True):
    """Why the response failed."""

    code: str
    message: str


class InputTokensDetails(FullStruct, frozen=True, kw_only=True):
    """The parts of the input that the vendor read from its prompt cache and wrote to it, in tokens."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(FullStruct, frozen=True, kw_only=True):
    """The reasoning part of the output, in tokens."""

    reasoning_tokens: int


class ResponseUsage(FullStruct, frozen=True, kw_only=True):
    """Token counts of all model calls of the response."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ConversationOut(FullStruct, frozen=True, kw_only=True):
    """The conversation that the response belongs to."""

    id: str


class ResponseResource(FullStruct, frozen=True, kw_only=True):
    """A response: what the client requested, and the answer so far."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: ResponseStatus
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    output: tuple[OutputItem, ...] = ()
    usage: ResponseUsage | None = None
    conversation: ConversationOut | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] = []
    tool_choice: Any = "auto"
    parallel_tool_calls: bool = True
    max_tool_calls: int | None = None
    text: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"format": {"type": "text"}, "verbosity": "medium"}
    )
    reasoning: dict[str, Any] = msgspec.field(default_factory=lambda: {"effort": None, "summary": None})
    temperature: float = 1.0
    top_p: float = 1.0
    top_logprobs: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_output_tokens: int | None = None
    metadata: dict[str, str] = {}
    truncation: Literal["auto", "disabled"] = "disabled"
    store: bool = True
    background: bool = False
    service_tier: Literal["default"] = "default"
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None


class ResponseDeleted(FullStruct, frozen=True, kw_only=True):
    """The response can no longer be retrieved."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


PARAMETER_FIELDS = frozenset(
    {
        *("model", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "text"),
        *("reasoning", "temperature", "top_p", "max_output_tokens", "metadata", "truncation", "user"),
        *("safety_identifier", "prompt_cache_key"),
    }
)
"""The fields of a response that repeat parameters of the request (``ResponseRequest.parameters``)."""


def with_parameters(resource: ResponseResource, parameters: dict[str, Any]) -> ResponseResource:
    """Return the response with the parameters of its request."""
    known = {name: value for name, value in parameters.items() if name in PARAMETER_FIELDS}
    return msgspec.structs.replace(resource, **known)
