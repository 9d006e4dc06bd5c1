"""The adapter that answers the turn of a run: it computes the run's next call, and no model is called."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from trunkline import Message, ToolCall
from trunkline.api.memory import utc_now
from trunkline.api.model import Call, Finish, ModelAdapter, ModelEvent, ModelRequest, Text
from trunkline.api.text import unwrap_tool_result
from trunkline_workflow.definition import DefinitionError, parse_definition
from trunkline_workflow.run import APPROVAL_TOOL, CallResult, PlannedCall, RunState, parse_result, replay
from trunkline_workflow.run_message import MODEL, RunStart, read_start

NO_RUN = (
    "This conversation has no workflow to run. `trunkline workflows run NAME` begins a run; "
    "`trunkline workflows list` shows the workflows of a block."
)


class WorkflowAdapter(ModelAdapter):
    """Answers the turn of a run with the call of its next step."""

    name = MODEL
    vendor = MODEL
    derived = True
    configured = False  # never the default adapter: only a run names it

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer; no error is possible, and no tokens are counted because there is no model."""
        text, planned = next_answer(request.messages)
        yield Text(text)
        if planned is not None:
            yield Call(tool_call(planned))
        yield Finish(reason="stop" if planned is None else "tool_calls", model=MODEL)


def next_answer(messages: Sequence[Message]) -> tuple[str, PlannedCall | None]:
    """Return the text of the next answer, and the call that it makes; None when the run has ended."""
    found = find_run(messages)
    if found is None:
        return NO_RUN, None
    start, since = found
    try:
        state = run_state(start, results_in(since))
    except DefinitionError as error:
        return f"Workflow {start.workflow} cannot be run: {error}", None
    if state.next is None:
        return ending(start, state), None
    return f"{start.workflow}: step {state.next.step}\n", state.next


def find_run(messages: Sequence[Message]) -> tuple[RunStart, Sequence[Message]] | None:
    """Return the last run that the messages begin, and the messages after its beginning."""
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if message.role == "user" and (start := read_start(message.content)) is not None:
            return start, messages[number + 1 :]
    return None


def run_state(start: RunStart, results: Mapping[str, CallResult]) -> RunState:
    """Return the state of a run with these results, by the ids of the calls. Raises DefinitionError."""

    def found(planned: PlannedCall) -> CallResult | None:
        return results.get(planned.id) or _earlier(start, planned)

    definition = parse_definition(start.definition)
    return replay(definition, start.inputs, found, start.run, start.sha256)


def results_in(messages: Iterable[Message]) -> dict[str, CallResult]:
    """Return the results that messages hold, by the ids of the calls."""
    return {
        message.tool_call_id: call_result(
            message.content, (message.error_kind or "failed") if message.error else ""
        )
        for message in messages
        if message.role == "tool" and message.tool_call_id
    }


def call_result(output: str, kind: str) -> CallResult:
    """Return what a call returned. ``kind`` is the kind of its error, "" for none."""
    text = unwrap_tool_result(output)
    return CallResult(text if kind else parse_result(text), kind, text)


def _earlier(start: RunStart, planned: PlannedCall) -> CallResult | None:
    """Return the result that the same call had in the run that this one continues. Approvals are asked for again."""
    done = start.done.get(planned.id)
    if done is None or planned.tool == APPROVAL_TOOL:
        return None
    if (done.tool, done.arguments) != (planned.tool, planned.arguments):
        return None
    return call_result(done.text, done.kind)


def ending(start: RunStart, state: RunState) -> str:
    """Return the last answer of a run."""
    if state.status == "failed":
        return f"Workflow {start.workflow} failed. {state.context.get('error', '')}".rstrip()
    steps = " → ".join(visit.step for visit in state.visits)
    return f"Workflow {start.workflow} completed: {steps}."


def tool_call(planned: PlannedCall) -> ToolCall:
    """Return the call. One that waits gets the time of its end, so that a repetition after a crash does not wait
    anew."""
    arguments: dict[str, Any] = planned.arguments
    if planned.wait is not None:
        arguments = {"until": (utc_now() + timedelta(seconds=planned.wait)).isoformat()}
    if planned.timeout is None:
        return ToolCall(id=planned.id, name=planned.tool, arguments=arguments)
    return ToolCall(id=planned.id, name=planned.tool, arguments=arguments, timeout=planned.timeout)
