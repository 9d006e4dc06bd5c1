"""The events of a streamed response, as OpenAI's clients expect them. Structs only; ``response_builder.py`` makes
them."""

from typing import Literal

from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    OutputItem,
    OutputText,
    ResponseResource,
    SummaryText,
)
from trunkline.workers.gateway.http.openai.schemas import ErrorDetail, FullStruct


class ResponseEvent(FullStruct, frozen=True, kw_only=True, tag_field="type"):
    """An event. ``sequence_number`` counts the events of a response from 0, without gaps."""

    sequence_number: int

    @property
    def event_type(self) -> str:
        """The type of the event, which is its name as a server-sent event, too."""
        return str(self.__struct_config__.tag)


class _StateEvent(ResponseEvent, frozen=True, kw_only=True):
    response: ResponseResource


class ResponseCreated(_StateEvent, frozen=True, kw_only=True, tag="response.created"):
    """The request is accepted: the response will be complete even if processes fail from now on."""


class ResponseQueued(_StateEvent, frozen=True, kw_only=True, tag="response.queued"):
    """A response in the background waits for its turn."""


class ResponseInProgress(_StateEvent, frozen=True, kw_only=True, tag="response.in_progress"):
    """The response is being written."""


class ResponseCompleted(_StateEvent, frozen=True, kw_only=True, tag="response.completed"):
    """The response is complete and stored."""


class ResponseIncomplete(_StateEvent, frozen=True, kw_only=True, tag="response.incomplete"):
    """The response ended early, for the reason in ``incomplete_details``, or because it was cancelled."""


class ResponseFailed(_StateEvent, frozen=True, kw_only=True, tag="response.failed"):
    """The response failed, for the reason in ``error``."""


class OutputItemAdded(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    """An item begins."""

    output_index: int
    item: OutputItem


class OutputItemDone(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An item is complete."""

    output_index: int
    item: OutputItem


class _PartEvent(ResponseEvent, frozen=True, kw_only=True):
    item_id: str
    output_index: int
    content_index: int = 0


class ContentPartAdded(_PartEvent, frozen=True, kw_only=True, tag="response.content_part.added"):
    """The text of a message begins."""

    part: OutputText


class ContentPartDone(_PartEvent, frozen=True, kw_only=True, tag="response.content_part.done"):
    """The text of a message is complete."""

    part: OutputText


class OutputTextDelta(_PartEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """More text of a message."""

    delta: str
    logprobs: tuple[()] = ()


class OutputTextDone(_PartEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The whole text of a message."""

    text: str
    logprobs: tuple[()] = ()


class _SummaryEvent(ResponseEvent, frozen=True, kw_only=True):
    item_id: str
    output_index: int
    summary_index: int = 0


class SummaryPartAdded(_SummaryEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_part.added"):
    """The reasoning of a model call begins."""

    part: SummaryText


class SummaryPartDone(_SummaryEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_part.done"):
    """The reasoning of a model call is complete."""

    part: SummaryText


class SummaryTextDelta(_SummaryEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_text.delta"):
    """More reasoning."""

    delta: str


class SummaryTextDone(_SummaryEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_text.done"):
    """The whole reasoning of a model call."""

    text: str


class ArgumentsDelta(ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"):
    """The arguments of a call, in one piece."""

    item_id: str
    output_index: int
    delta: str


class ArgumentsDone(ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"):
    """The arguments of a call."""

    item_id: str
    output_index: int
    name: str
    arguments: str


class ErrorEvent(ResponseEvent, frozen=True, kw_only=True, tag="error"):
    """The stream ends here, and the response may go on: it can be retrieved by its id."""

    code: str
    message: str
    param: str | None = None
    error: ErrorDetail
    """The same, where OpenAI's clients look for an error that they raise."""


STATE_EVENTS = (
    ResponseCreated,
    ResponseQueued,
    ResponseInProgress,
    ResponseCompleted,
    ResponseIncomplete,
    ResponseFailed,
)
RESPONSE_EVENTS: tuple[type[ResponseEvent], ...] = (
    *STATE_EVENTS,
    OutputItemAdded,
    OutputItemDone,
    ContentPartAdded,
    ContentPartDone,
    OutputTextDelta,
    OutputTextDone,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    SummaryTextDone,
    ArgumentsDelta,
    ArgumentsDone,
    ErrorEvent,
)
"""All events of a streamed response."""

TERMINAL: dict[str, type[ResponseCompleted | ResponseIncomplete | ResponseFailed]] = {
    "completed": ResponseCompleted,
    "incomplete": ResponseIncomplete,
    "cancelled": ResponseIncomplete,
    "failed": ResponseFailed,
}
"""The last event of a response by its status."""

Phase = Literal["commentary", "final_answer"]
