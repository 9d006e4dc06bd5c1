"""Builds a response from the feed events of its turn: the items so far, and the numbered events that show them. Pure.

The events are a function of the turn's steps in the order of its journal, so whoever reads the turn again, after any
crash, numbers the same event the same (ADR 66). OpenAI's clients cannot take text back: after a reset the response
continues only if the new text begins with the text that was sent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    FeedEvent,
    ReasoningDelta,
    TextDelta,
    TextReset,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.blocking_approvals import approval_text
from trunkline.workers.gateway.http.openai.messages import arguments_text
from trunkline.workers.gateway.http.openai.responses.response_events import (
    TERMINAL,
    ArgumentsDelta,
    ArgumentsDone,
    ContentPartAdded,
    ContentPartDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    OutputTextDone,
    Phase,
    ResponseCreated,
    ResponseEvent,
    ResponseInProgress,
    ResponseQueued,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    SummaryTextDone,
)
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    FunctionCallItem,
    IncompleteDetails,
    InputTokensDetails,
    ItemStatus,
    OutputItem,
    OutputMessage,
    OutputText,
    OutputTokensDetails,
    ReasoningItem,
    ResponseError,
    ResponseResource,
    ResponseStatus,
    ResponseUsage,
    SummaryText,
)
from trunkline.workers.gateway.http.openai.responses.text_pieces import complete_pieces

TURN_PREFIX = "turn_"
_ITEM_ID = re.compile(r"(?:msg|fc|rs)_([a-z0-9]+)_([0-9]{1,6})")

STATUSES: dict[FinishReason, tuple[ResponseStatus, str]] = {
    "stop": ("completed", ""),
    "tool_calls": ("completed", ""),
    "max_tokens": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
    "stopped": ("incomplete", "stopped"),
    "cancelled": ("cancelled", ""),
    "error": ("failed", ""),
}
"""The status of a response by the reason why its turn ended, and why it is incomplete."""

ERROR_CODES = {
    ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
    ErrorCode.OVER_BUDGET: "rate_limit_exceeded",
    ErrorCode.NOT_SENT: "invalid_prompt",
    ErrorCode.INVALID_REQUEST: "invalid_prompt",
    ErrorCode.CONTEXT_OVERFLOW: "invalid_prompt",
}
"""OpenAI's code of a failed response; ``server_error`` for any other failure."""


UNRECORDED = "u"
"""The end of the id of an item that is not in the journal, so that nobody can find it again."""


def item_id(prefix: str, turn: str, number: int) -> str:
    """Return the id of an item: it has the turn and the number of the item among those of the turn."""
    return f"{prefix}_{turn.removeprefix(TURN_PREFIX)}_{number}"


def parse_item_id(id: str) -> tuple[str, int] | None:
    """Return the turn and the number of an item, None for another id."""
    found = _ITEM_ID.fullmatch(id)
    return (TURN_PREFIX + found[1], int(found[2])) if found else None


@dataclass(slots=True)
class _OpenItem:
    """The item that is being written: the text of a step, or its reasoning."""

    item: OutputMessage | ReasoningItem
    step: int
    sent: str = ""


class ResponseBuilder:
    """Takes the feed events of one turn in order. ``resource`` is the response so far.

    With ``detail`` a failed response states why the turn failed.
    """

    def __init__(self, resource: ResponseResource, turn: str, *, detail: bool = False) -> None:
        self._resource = resource
        self._turn = turn
        self._detail = detail
        self._output: list[OutputItem] = []
        self._open: _OpenItem | None = None
        self._texts: dict[int, str] = {}
        self._reasonings: dict[int, str] = {}
        self._closed: dict[int, str] = {}
        """The texts of complete messages by step."""
        self._added = 0
        """The number of items that are not those of ``say``."""
        self._number = 0
        self.completed_at: int | None = None
        """The time at which the turn ended, in Unix seconds. Set it before the last event."""

    @property
    def resource(self) -> ResponseResource:
        """The response with the items so far."""
        return replace(self._resource, output=tuple(self._output))

    @property
    def next_number(self) -> int:
        """The number of the next event."""
        return self._number

    def begin(self) -> Iterator[ResponseEvent]:
        """Yield the first events."""
        yield self._event(ResponseCreated, response=self.resource)
        if self._resource.background:
            yield self._event(ResponseQueued, response=self.resource)
        self._resource = replace(self._resource, status="in_progress")
        yield self._event(ResponseInProgress, response=self.resource)

    def add(self, event: FeedEvent) -> Iterator[ResponseEvent]:
        """Yield the events that show a feed event. Raises Refusal if the text that was sent is no longer valid."""
        match event:
            case TextDelta(step=step, offset=offset, text=text):
                self._texts[step] = self._texts.get(step, "")[:offset] + text
                yield from self._show_text(step)
            case ReasoningDelta(step=step, offset=offset, text=text):
                self._reasonings[step] = self._reasonings.get(step, "")[:offset] + text
                yield from self._show_reasoning(step)
            case TextReset(step=step):
                self._texts[step] = self._reasonings[step] = ""
            case ToolStarted(client=True, call=call):
                yield from self._close()
                yield from self._call(call.id, call.name, arguments_text(call))
            case ToolStarted():
                # The journal does not know where in the reasoning a tool of the vendor ran, so only text is cut there.
                if self._open is not None and isinstance(self._open.item, OutputMessage):
                    yield from self._flush()
            case ApprovalRequested():
                yield from self._say(approval_text(event), self._id("msg"))
            case TurnEnded():
                yield from self._end(event)

    def say(self, text: str) -> Iterator[ResponseEvent]:
        """Yield the events of a message that is not in the turn's journal, such as an approval of another turn."""
        yield from self._say(text, f"{item_id('msg', self._turn, len(self._output))}{UNRECORDED}")

    def _say(self, text: str, id: str) -> Iterator[ResponseEvent]:
        yield from self._close()
        item = OutputMessage(id=id, status="in_progress", role="assistant", content=())
        yield from self._begin_item(item, step=-1)
        yield from self._delta(text)
        yield from self._close()

    # Text ----------------------------------------------------------------------------------------------------

    def _show_text(self, step: int) -> Iterator[ResponseEvent]:
        if step in self._closed or not self._texts[step]:
            return
        if not self._is_open(step, OutputMessage):
            yield from self._close()
            item = OutputMessage(id=self._id("msg"), status="in_progress", role="assistant", content=())
            yield from self._begin_item(item, step)
        for piece in complete_pieces(self._unsent(self._texts[step])):
            yield from self._delta(piece)

    def _show_reasoning(self, step: int) -> Iterator[ResponseEvent]:
        """Show reasoning that precedes the text of its step, if the client requested a summary."""
        if not self._resource.reasoning.get("summary") or not self._reasonings[step]:
            return
        if self._is_open(step, OutputMessage) or step in self._closed:
            return
        if not self._is_open(step, ReasoningItem):
            yield from self._close()
            item = ReasoningItem(id=self._id("rs"), status="in_progress", summary=())
            yield from self._begin_item(item, step)
        for piece in complete_pieces(self._unsent(self._reasonings[step])):
            yield from self._delta(piece)

    def _is_open(self, step: int, kind: type[OutputMessage | ReasoningItem]) -> bool:
        return self._open is not None and self._open.step == step and isinstance(self._open.item, kind)

    def _unsent(self, text: str) -> str:
        """Return the text that the client lacks; "" while a repeated answer is shorter than the text that was sent."""
        sent = self._open.sent if self._open is not None else ""
        if sent.startswith(text):
            return ""
        if not text.startswith(sent):
            raise refusal(ErrorCode.PROVIDER_ERROR)
        return text[len(sent) :]

    def _flush(self) -> Iterator[ResponseEvent]:
        """Send all of the open item's text, whose step is complete or pauses for a tool."""
        if self._open is None or self._open.step < 0:
            return
        texts = self._texts if isinstance(self._open.item, OutputMessage) else self._reasonings
        text = texts.get(self._open.step, "")
        if rest := self._unsent(text):
            yield from self._delta(rest)
        if self._open.sent != text:
            raise refusal(ErrorCode.PROVIDER_ERROR)

    # Items ---------------------------------------------------------------------------------------------------

    def _begin_item(self, item: OutputMessage | ReasoningItem, step: int) -> Iterator[ResponseEvent]:
        self._open = _OpenItem(item, step)
        index = len(self._output)
        self._output.append(item)
        yield self._event(OutputItemAdded, output_index=index, item=item)
        if isinstance(item, OutputMessage):
            part = OutputText(text="")
            yield self._event(ContentPartAdded, item_id=item.id, output_index=index, part=part)
        else:
            summary = SummaryText(text="")
            yield self._event(SummaryPartAdded, item_id=item.id, output_index=index, part=summary)

    def _delta(self, text: str) -> Iterator[ResponseEvent]:
        assert self._open is not None
        self._open.sent += text
        self._output[-1] = self._written(self._open, "in_progress")
        kind = OutputTextDelta if isinstance(self._open.item, OutputMessage) else SummaryTextDelta
        index = len(self._output) - 1
        yield self._event(kind, item_id=self._open.item.id, output_index=index, delta=text)

    def _close(
        self, status: ItemStatus = "completed", phase: Phase = "commentary"
    ) -> Iterator[ResponseEvent]:
        """Complete the open item, if there is one."""
        if self._open is None:
            return
        yield from self._flush()
        closing, self._open = self._open, None
        item = self._written(closing, status, phase)
        index, self._output[-1] = len(self._output) - 1, item
        at: dict[str, Any] = {"item_id": item.id, "output_index": index}
        if isinstance(item, OutputMessage):
            if closing.step >= 0:
                self._closed[closing.step] = closing.sent
            yield self._event(OutputTextDone, **at, text=closing.sent)
            yield self._event(ContentPartDone, **at, part=OutputText(text=closing.sent))
        else:
            yield self._event(SummaryTextDone, **at, text=closing.sent)
            yield self._event(SummaryPartDone, **at, part=SummaryText(text=closing.sent))
        yield self._event(OutputItemDone, output_index=index, item=item)

    def _written(
        self, open_item: _OpenItem, status: ItemStatus, phase: Phase | None = None
    ) -> OutputMessage | ReasoningItem:
        item, text = open_item.item, open_item.sent
        if isinstance(item, OutputMessage):
            return replace(item, status=status, content=(OutputText(text=text),), phase=phase)
        return replace(item, status=status, summary=(SummaryText(text=text),))

    def _call(self, call_id: str, name: str, arguments: str) -> Iterator[ResponseEvent]:
        item = FunctionCallItem(
            id=self._id("fc"), status="in_progress", call_id=call_id, name=name, arguments=""
        )
        index = len(self._output)
        yield self._event(OutputItemAdded, output_index=index, item=item)
        yield self._event(ArgumentsDelta, item_id=item.id, output_index=index, delta=arguments)
        yield self._event(ArgumentsDone, item_id=item.id, output_index=index, name=name, arguments=arguments)
        done = replace(item, status="completed", arguments=arguments)
        self._output.append(done)
        yield self._event(OutputItemDone, output_index=index, item=done)

    def _id(self, prefix: str) -> str:
        """Return the id of the next item, the same for every reader."""
        self._added += 1
        return item_id(prefix, self._turn, self._added - 1)

    # The end -------------------------------------------------------------------------------------------------

    def _end(self, ended: TurnEnded) -> Iterator[ResponseEvent]:
        status, reason = STATUSES[ended.reason]
        if ended.code is not None:
            status, reason = "failed", ""
        complete = status == "completed"
        phase: Phase = "final_answer" if complete and ended.reason == "stop" else "commentary"
        yield from self._close("completed" if complete else "incomplete", phase)
        if any(self._texts[step] != text for step, text in self._closed.items()):
            raise refusal(ErrorCode.PROVIDER_ERROR)
        self._resource = replace(
            self._resource,
            status=status,
            completed_at=self.completed_at if complete else None,
            incomplete_details=IncompleteDetails(reason=reason) if reason else None,
            error=self._error(ended) if status == "failed" else None,
            usage=usage_of(ended.usage),
        )
        yield self._event(TERMINAL[status], response=self.resource)

    def _error(self, ended: TurnEnded) -> ResponseError:
        code = ended.code or ErrorCode.INTERNAL
        why = f" {ended.detail}" if ended.detail and self._detail else ""
        return ResponseError(
            code=ERROR_CODES.get(code, "server_error"), message=f"{FIXED_SENTENCES[code]}{why}"
        )

    def _event(self, kind: type[ResponseEvent], **fields: Any) -> ResponseEvent:
        event = kind(sequence_number=self._number, **fields)
        self._number += 1
        return event


def usage_of(usage: Usage) -> ResponseUsage:
    """Return the token counts under the names of the Responses API."""
    return ResponseUsage(
        input_tokens=usage.input_tokens,
        input_tokens_details=InputTokensDetails(
            cached_tokens=usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens
        ),
        output_tokens=usage.output_tokens,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=usage.reasoning_tokens),
        total_tokens=usage.input_tokens + usage.output_tokens,
    )
