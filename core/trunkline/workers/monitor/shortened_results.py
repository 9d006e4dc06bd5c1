"""Shortens old tool results in the history that a model is sent. Pure: the result depends on the transcript alone, so a
takeover, a restart and a fork send the same bytes. The stored conversation stays whole.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msgspec.structs import replace

from trunkline._util.untrusted_text import ToolResultBlock, find_tool_result_block, wrap_tool_result
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.token_estimate import estimate_message_tokens
from trunkline.contracts.tools.messages import DISCOVER_TOOLS, READ_RESULT
from trunkline.workers.monitor.tool_selection import LOADED_TOOLS_KEY

MIN_SAVED_CHARACTERS = 200
"""The smallest number of characters by which a result is shortened. The note that replaces them has about 120."""

MIN_SAVED_TOKENS = 2_000
"""The smallest number of tokens that a move of the boundary saves. Vendors cache nothing below 1 024 tokens."""

SAVED_PER_RESENT = 2
"""How many times the tokens that a move of the boundary saves exceed those that the vendor must read anew because of
it. ADR 77 has the calculation."""

LISTING_NAMES = (DISCOVER_TOOLS, "list_tools_available")
"""The names by which a model calls the tool that lists tools."""

_LISTED = re.compile(r"^(?:Available|Restricted) \((\d+)\)", re.MULTILINE)
"""Matches the numbers of tools in a list of ``discover_tools``."""


def shorten_old_results(history: Sequence[Message], limits: Mapping[str, int]) -> tuple[Message, ...]:
    """Return the history with the old results of the tools in ``limits`` cut to that many characters.

    Results before a boundary are old; the boundary is the beginning of a turn, and the newest ended turn is always
    behind it. The boundary moves only when that saves much more than the vendor must read anew, so the beginning of
    the requests stays the same over many turns (ADR 77).
    """
    shortened = {number: short for number, one in enumerate(history) if (short := _shortened(one, limits))}
    if not shortened:
        return tuple(history)
    end = _boundary(history, shortened)
    return (*(shortened.get(number, one) for number, one in enumerate(history[:end])), *history[end:])


def _boundary(history: Sequence[Message], shortened: Mapping[int, Message]) -> int:
    """Return the number of messages before the boundary. Each turn moved it, or not, by the history of that time."""
    sizes, boundary = _Sizes.measure(history, shortened), 0
    starts = [*_turn_starts(history), len(history)]
    for newest, now in pairwise(starts):
        if sizes.is_worthwhile(boundary, newest, now):
            boundary = newest
    return boundary


@dataclass(frozen=True, slots=True)
class _Sizes:
    """``tokens`` has for each number of messages the tokens of the first messages, ``saved`` those that shortening
    saves of them. ``long`` are the numbers of the messages that can be shortened."""

    tokens: list[int]
    saved: list[int]
    long: list[int]

    @classmethod
    def measure(cls, history: Sequence[Message], shortened: Mapping[int, Message]) -> "_Sizes":
        tokens = [estimate_message_tokens((message,)) for message in history]
        saved = [0] * len(tokens)
        for number, short in shortened.items():
            saved[number] = tokens[number] - estimate_message_tokens((short,))
        return cls([0, *accumulate(tokens)], [0, *accumulate(saved)], list(shortened))

    def is_worthwhile(self, boundary: int, end: int, now: int) -> bool:
        """Report whether to move the boundary to ``end`` when a turn begins after the first ``now`` messages. The
        vendor then reads anew what follows the first result that becomes shorter."""
        next_long = bisect_left(self.long, boundary)
        if next_long == len(self.long) or self.long[next_long] >= end:
            return False
        saving = self.saved[end] - self.saved[boundary]
        resent = self.tokens[now] - self.tokens[self.long[next_long]] - saving
        return saving >= max(MIN_SAVED_TOKENS, SAVED_PER_RESENT * resent)


def _turn_starts(history: Sequence[Message]) -> list[int]:
    """Return the numbers of the messages that begin a turn. A steered message belongs to the turn that it joined."""
    starts, turn = list[int](), None
    for number, message in enumerate(history):
        if message.role == "user" and (message.turn is None or message.turn != turn):
            starts.append(number)
        turn = message.turn
    return starts


def _shortened(message: Message, limits: Mapping[str, int]) -> Message | None:
    """Return the shortened result; None if the message is no result of these tools, or short already."""
    if message.role != "tool":
        return None
    block = find_tool_result_block(message.content)
    short = _without_listing(message, limits) if block is None else _beginning(message, block, limits)
    is_shorter = short is not None and len(message.content) - len(short.content) >= MIN_SAVED_CHARACTERS
    return short if is_shorter else None


def _beginning(message: Message, block: ToolResultBlock, limits: Mapping[str, int]) -> Message | None:
    """Return a result that is marked as data with only its beginning, and a note how to read all of it. The mark names
    the tool also where the model called the tool by another name. A result of a client's tool has no mark."""
    limit = limits.get(block.source)
    if limit is None or len(block.text) <= limit:
        return None
    head = f"{wrap_tool_result(block.source, block.text[:limit])}\n" if limit else ""
    note = (
        f"[An old result, shortened: {limit} of {len(block.text)} characters are shown. "
        f'{READ_RESULT} with id="{message.id}" reads all of it.]'
    )
    loads = dict.fromkeys([*message.metadata.get(LOADED_TOOLS_KEY, ()), READ_RESULT])
    return replace(message, content=head + note, metadata={**message.metadata, LOADED_TOOLS_KEY: list(loads)})


def _without_listing(message: Message, limits: Mapping[str, int]) -> Message | None:
    """Return a result of ``discover_tools`` with the number of tools in place of their list."""
    if message.name not in LISTING_NAMES or DISCOVER_TOOLS not in limits:
        return None
    count = sum(map(int, _LISTED.findall(message.content)))
    note = f"({count} tools previously discovered; {DISCOVER_TOOLS} lists them again)"
    return replace(message, content=note) if count else None
