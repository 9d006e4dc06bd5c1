"""Makes a transcript one that every vendor takes, where it becomes a model request. Pure; a valid one stays the same.

Vendors want each tool call answered exactly once, directly after the message that made it, and ids that are unique.
What is stored need not be so: a client may never answer a call, or answer late; a transcript may be imported or cut.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message, ToolCall

UNANSWERED = "No result of this call was returned. Whether it took effect is not known."
"""The result of a call that has none: the client did not return one, or it is not in the transcript any more."""


@dataclass(slots=True)
class _PairedCall:
    """A call under the id that it leaves with, and its result."""

    call: ToolCall
    result: Message | None = None


def repair_transcript(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with one result for each call, after its message and in the order of the calls.

    A call without a result gets one that says so. Results of no call, second results, and assistant messages that say
    nothing are left out. A call whose id was used before gets another.
    """
    asked = _pair_calls(messages)
    told: list[Message] = []
    for message, calls in zip(messages, asked, strict=True):
        if message.role == "assistant":
            told += _with_results(message, calls)
        elif message.role != "tool":
            told.append(message)
    return tuple(told)


def _pair_calls(messages: Sequence[Message]) -> list[list[_PairedCall]]:
    """The calls of each message, each with the first result that came after it."""
    taken = {call.id for message in messages for call in message.tool_calls}
    used: dict[str, int] = {}
    latest: dict[str, _PairedCall] = {}
    found: list[list[_PairedCall]] = []
    for message in messages:
        found.append([])
        if message.role == "assistant":
            mine = {call.id: _PairedCall(_with_unique_id(call, used, taken)) for call in message.tool_calls}
            for one in mine.values():
                used.setdefault(one.call.id, 1)
            latest.update(mine)
            found[-1] = list(mine.values())
        elif message.role == "tool":
            asked = latest.get(message.tool_call_id or "")
            if asked is not None and asked.result is None:
                asked.result = message
    return found


def _with_unique_id(call: ToolCall, used: dict[str, int], taken: set[str]) -> ToolCall:
    """The call under an id that no earlier one has. ``used`` has the last number given to each id: some models call
    every call alike, and to count from the start for each would be quadratic."""
    if call.id and call.id not in used:
        return call
    number = used.get(call.id, 1) + 1
    while f"{call.id}_{number}" in taken:
        number += 1
    taken.add(f"{call.id}_{number}")
    used[call.id] = number
    return replace(call, id=f"{call.id}_{number}")


def _with_results(message: Message, calls: list[_PairedCall]) -> Iterable[Message]:
    """The assistant's message and the results of its calls."""
    if not (message.content or calls):
        return
    made = tuple(asked.call for asked in calls)
    yield message if made == message.tool_calls else replace(message, tool_calls=made)
    for asked in calls:
        yield _result(message, asked)


def _result(message: Message, asked: _PairedCall) -> Message:
    call, result = asked.call, asked.result
    if result is None:
        return Message(
            id=f"{message.id}_{call.id}",
            role="tool",
            content=UNANSWERED,
            created_at=message.created_at,
            turn=message.turn,
            tool_call_id=call.id,
            name=call.name,
            error=True,
        )
    return result if result.tool_call_id == call.id else replace(result, tool_call_id=call.id)
