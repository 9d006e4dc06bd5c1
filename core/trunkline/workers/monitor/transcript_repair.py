"""Repairs transcripts so that every provider accepts them in a model request. Pure; a valid transcript stays
the same.

Providers require that each tool call is answered exactly once, directly after the message that made it, and
that ids are unique. Stored transcripts may violate this: a client may never answer a call, or answer late; a
transcript may be imported or cut.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message, ToolCall

UNANSWERED = "No result of this call was returned. Whether it took effect is not known."
"""The result of a call without one: the client returned none, or it is no longer in the transcript."""


@dataclass(slots=True)
class _PairedCall:
    """A call under its unique id, with its result."""

    call: ToolCall
    result: Message | None = None


def repair_transcript(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with one result for each call, after its message and in the order of the calls.

    A call without a result gets UNANSWERED. Results without a call, second results, and empty assistant
    messages are dropped. A call whose id was used before gets a new id.
    """
    pairs = _pair_calls(messages)
    repaired: list[Message] = []
    for message, calls in zip(messages, pairs, strict=True):
        if message.role == "assistant":
            repaired += _with_results(message, calls)
        elif message.role != "tool":
            repaired.append(message)
    return tuple(repaired)


def _pair_calls(messages: Sequence[Message]) -> list[list[_PairedCall]]:
    """Return the calls of each message, each with its first result that follows the call."""
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
            pair = latest.get(message.tool_call_id or "")
            if pair is not None and pair.result is None:
                pair.result = message
    return found


def _with_unique_id(call: ToolCall, used: dict[str, int], taken: set[str]) -> ToolCall:
    """Return the call under an id that no earlier one has.

    ``used`` has the last number given to each id: some models give every call the same id, and counting from
    the start for each would be quadratic.
    """
    if call.id and call.id not in used:
        return call
    number = used.get(call.id, 1) + 1
    while f"{call.id}_{number}" in taken:
        number += 1
    taken.add(f"{call.id}_{number}")
    used[call.id] = number
    return replace(call, id=f"{call.id}_{number}")


def _with_results(message: Message, calls: list[_PairedCall]) -> Iterable[Message]:
    """Return the assistant's message and the results of its calls."""
    if not (message.content or calls):
        return
    made = tuple(pair.call for pair in calls)
    yield message if made == message.tool_calls else replace(message, tool_calls=made)
    for pair in calls:
        yield _result(message, pair)


def _result(message: Message, pair: _PairedCall) -> Message:
    call, result = pair.call, pair.result
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
