"""The messages of a turn: for the model and for storage. Pure functions of the turn's state.

Message ids are derived from the turn, so storing a turn twice stores each message once.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from trunkline.contracts.conversations.messages import DISPLAY_ONLY, AppendConversation, Message, ToolCall
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.errors import ToolErrorKind
from trunkline.workers.monitor.steps import Step, ToolAction
from trunkline.workers.monitor.tool_selection import LOADED_TOOLS_KEY, loaded_tools
from trunkline.workers.monitor.turn import Turn
from trunkline_bus import key_of

UNFINISHED = "The turn ended before this call did; whether it took effect is not known."
"""The result of a call that was running when the turn was cancelled."""

NOT_BEGUN = "The turn ended before this call began; it was not run."
"""The result of a call that waited for other calls of the same answer."""

UNDECIDED = "The turn ended before anybody decided about this call; it was not run."
"""The result of a call that waited for a person's decision."""

AGENT_CANCELLED = (
    "The turn ended before the agent's task did; the task is cancelled, and what it did remains."
)
"""The result of a call that waited for the task of an agent."""

SHOWN_TO_PERSON = "The person was shown this as it is."
"""The content that a model receives in place of a text that only shows a command's result.

The result precedes this text, marked as data, and must not be repeated as the model's own words.
"""


def message_id(turn: str, *parts: str) -> str:
    """Return the id of a message that this turn creates."""
    return f"msg_{key_of(turn, *parts)}"


def new_messages(turn: Turn, *, closing: bool = False) -> tuple[Message, ...]:
    """Return the messages that the turn adds to the conversation: the client's, the user's, then its own.

    With ``closing``, a Trunkline call without a result gets an error result, because models require a result.
    """
    assert turn.request is not None
    id, preceding = turn.request.turn, turn.request.preceding or ()
    own = [message for step in turn.steps[:-1] for message in _cached_step_messages(id, step)]
    for step in turn.steps[-1:]:
        own.extend(_step_messages(id, step, closing))
    said = (*preceding, turn.request.message, *turn.early)
    return (
        *(_with_turn(id, message) for message in said),
        *own,
        *(_with_turn(id, message) for message in turn.pending),
    )


def _cached_step_messages(turn: str, step: Step) -> tuple[Message, ...]:
    """Return the messages of a step that another one follows, computed once: a turn may have thousands of
    steps."""
    if step.messages is None:
        step.messages = tuple(_step_messages(turn, step, closing=True))
    return step.messages


def model_messages(
    context: Sequence[Message], history: Sequence[Message], new: Sequence[Message]
) -> tuple[Message, ...]:
    """Return the messages for the model. Context that changes with each turn directly precedes the user's message, so
    that all earlier messages stay the same."""
    history, new = tuple(map(_as_model_input, history)), tuple(map(_as_model_input, new))
    constant = [message for message in context if message.role == "system"]
    changing = [message for message in context if message.role != "system"]
    if not changing:
        return (*constant, *history, *new)
    messages = [*history, *new]
    backwards = range(len(history), -1, -1)  # a client may send a tool's result, which must follow its call
    at = next((number for number in backwards if messages[number].role == "user"), 0)
    return (*constant, *messages[:at], *changing, *messages[at:])


def _as_model_input(message: Message) -> Message:
    if message.role != "assistant" or not message.metadata.get(DISPLAY_ONLY):
        return message
    return msgspec.structs.replace(message, content=SHOWN_TO_PERSON)


def _with_turn(turn: str, message: Message) -> Message:
    """Return the message marked as this turn's."""
    return message if message.turn == turn else msgspec.structs.replace(message, turn=turn)


def append_request(turn: Turn) -> AppendConversation:
    """Return the request that appends the turn's messages to the conversation."""
    request = turn.request
    assert request is not None
    return AppendConversation(
        block=request.block,
        conversation=request.conversation,
        messages=(*(request.history or ()), *map(_as_stored, new_messages(turn, closing=True))),
        actor=request.actor,
        turn=request.turn,
        forked_from=request.fork.origin if request.fork else None,
        one_shot=bool(request.one_shot),
        summary_record=_forked_record(turn),
    )


def _forked_record(turn: Turn) -> SummaryRecord | None:
    """Return the summary record that a fork takes along, as the first one of the new conversation."""
    if turn.request is None or turn.request.fork is None or turn.summary_record is None:
        return None
    return msgspec.structs.replace(turn.summary_record, previous="")


def _as_stored(message: Message) -> Message:
    """Return the message without the vendor's blocks of reasoning, which only the running turn needs."""
    return msgspec.structs.replace(message, reasoning=()) if message.reasoning else message


def last_answer_id(messages: Iterable[Message]) -> str | None:
    """Return the id of the last assistant message, which ``done`` names."""
    ids = [message.id for message in messages if message.role == "assistant"]
    return ids[-1] if ids else None


def _step_messages(turn: str, step: Step, closing: bool) -> Iterable[Message]:
    yield from _ran_messages(turn, step)
    text = step.text[step.ran[-1].at :] if step.ran else step.text
    if text or step.actions or not step.ran:
        yield Message(
            id=message_id(turn, "step", str(step.number)),
            role="assistant",
            content=text,
            turn=turn,
            tool_calls=tuple(action.call for action in step.actions),
            partial=step.partial,
            metadata={DISPLAY_ONLY: True} if step.commanded and text else {},
            derived=step.derived or bool(step.commanded and text) or None,
            reasoning=step.reasoning_blocks,
        )
    for action in step.actions:
        if action.outcome is not None:
            outcome = action.outcome
            derived = outcome.derived if isinstance(outcome.derived, bool) else None
            loads = loaded_tools(outcome)
            result = _result(turn, step, action.call, outcome.output, outcome.kind, loads, derived)
            yield msgspec.structs.replace(result, files=outcome.files) if outcome.files else result
        elif closing and not action.client:
            yield _result(turn, step, action.call, *_unfinished(action))
    yield from (_with_turn(turn, message) for message in step.steered)


def _unfinished(action: ToolAction) -> tuple[str, ToolErrorKind]:
    """Return the text and error kind for a Trunkline call without a result."""
    if action.waits_for_agent:
        return AGENT_CANCELLED, "cancelled"
    if action.waiting:
        return UNDECIDED, "cancelled"
    if action.due and not action.again:
        return NOT_BEGUN, "cancelled"
    return UNFINISHED, "outcome_unknown"


def _ran_messages(turn: str, step: Step) -> Iterable[Message]:
    """Yield the calls that the provider ran, each with the text before it, as if Trunkline had run them."""
    begin = 0
    for at, together in groupby(step.ran, key=lambda ran: ran.at):
        group = tuple(together)
        yield Message(
            id=message_id(turn, "ran", str(step.number), group[0].call.id),
            role="assistant",
            content=step.text[begin:at],
            turn=turn,
            derived=step.derived or None,
            tool_calls=tuple(ran.call for ran in group),
        )
        for ran in group:
            yield _result(turn, step, ran.call, ran.output, "upstream_error" if ran.error else None)
        begin = at


def _result(
    turn: str,
    step: Step,
    call: ToolCall,
    output: str,
    kind: ToolErrorKind | None,
    loads: tuple[str, ...] = (),
    derived: bool | None = None,
) -> Message:
    return Message(
        id=message_id(turn, "result", str(step.number), call.id),
        role="tool",
        content=output,
        turn=turn,
        tool_call_id=call.id,
        name=call.name,
        error=kind is not None,
        error_kind=kind or "",
        derived=derived,
        metadata={LOADED_TOOLS_KEY: list(loads)} if loads else {},
    )
