"""The messages that a summary replaces, and those that stay. Pure."""

from collections.abc import Sequence

from trunkline import Message
from trunkline.api.model import estimate_message_tokens


def count_covered(messages: Sequence[Message], covered: int, *, keep: int, budget: int) -> int:
    """Return the number of first messages that a summary is to replace; ``covered`` if there are no more of them than
    now.

    At most ``keep`` messages stay, the newest, with at most ``budget`` tokens together. A message that is larger than
    the budget does not stay, nor do those before it. No call is separated from its result, and a call without a result
    stays, because its result may still come.
    """
    begin = len(messages)
    tokens = 0
    while begin > covered and len(messages) - begin < keep:
        tokens += estimate_message_tokens(messages[begin - 1 : begin])
        if tokens > budget:
            break
        begin -= 1
    begin = _without_orphans(messages, begin)
    return max(covered, min(begin, _first_open_call(messages)))


def _without_orphans(messages: Sequence[Message], begin: int) -> int:
    """Return the first message from ``begin`` on after which no result stays whose call does not."""
    calls = {call.id for message in messages[:begin] for call in message.tool_calls}
    kept = range(begin, len(messages))
    orphans = [n for n in kept if messages[n].role == "tool" and messages[n].tool_call_id in calls]
    own = {call.id for n in kept for call in messages[n].tool_calls}
    orphans = [n for n in orphans if messages[n].tool_call_id not in own]
    return orphans[-1] + 1 if orphans else begin


def _first_open_call(messages: Sequence[Message]) -> int:
    """Return the number of the last assistant message if one of its calls has no result, else of all messages."""
    for number in range(len(messages) - 1, -1, -1):
        if messages[number].tool_calls:
            answered = {message.tool_call_id for message in messages[number + 1 :]}
            is_open = any(call.id not in answered for call in messages[number].tool_calls)
            return number if is_open else len(messages)
    return len(messages)
