"""Finds words in the messages of a conversation. Pure functions."""

from collections.abc import Iterator, Sequence

from trunkline import Message
from trunkline.api.text import format_local_time, unwrap_tool_result
from trunkline_terminal import text_format

MOST_FOUND = 30
"""The largest number of lines that are shown: the latest ones."""

BEFORE, LINE = 30, 100
"""Characters of a line that are shown before the words, and all."""

WHO = {"user": "you", "assistant": "agent", "tool": "tool", "system": "system"}


def find_in_messages(words: str, messages: Sequence[Message]) -> str:
    """Return the lines with these words in the order of the messages, in any case of letters."""
    wanted = words.casefold()
    found = [line for message in messages for line in _found(wanted, message)]
    if not found:
        return f"Nothing in this conversation has {words!r}."
    left_out = len(found) - MOST_FOUND
    head = [f"The latest {MOST_FOUND} of {len(found)} lines:"] if left_out > 0 else []
    return "\n".join([*head, *found[-MOST_FOUND:]])


def _found(wanted: str, message: Message) -> Iterator[str]:
    text = unwrap_tool_result(message.content) if message.role == "tool" else message.content
    for line in text.splitlines():
        at = line.casefold().find(wanted)
        if at >= 0:
            begin = max(at - BEFORE, 0)
            excerpt = ("…" if begin else "") + line[begin:]
            who = WHO.get(message.role, message.role)
            yield f"{format_local_time(message.created_at)}  {who:<6}  {text_format.shorten(excerpt, LINE)}"
