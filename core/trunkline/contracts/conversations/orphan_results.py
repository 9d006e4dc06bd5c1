"""Tool results without a call. No provider accepts a transcript that contains one."""

from collections.abc import Iterable

from trunkline.contracts.conversations.messages import Message

ORPHAN_RESULT_TEXT = (
    "No call that waits for a result has this id: a tool's message follows the message with its call."
)


def first_orphan_result(messages: Iterable[Message]) -> int | None:
    """Return the number of the first result that answers no open call of the assistant message before it; None if
    there is none.
    """
    waiting: set[str | None] = set()
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return number
            waiting.discard(message.tool_call_id)
        elif message.role != "system":
            waiting = {call.id for call in message.tool_calls}
    return None
