"""The HUD's state of tools, memory and plans, computed from the conversation so far. Pure.

A HUD is made when a turn begins. So its tools are those of the turn before: what they did, and what is left open.
"""

import re
from collections.abc import Iterator, Sequence

from trunkline import Message
from trunkline_personality.hud import ToolsState

CANDIDATES = "[MEMORY_CANDIDATES]"
"""The line after which an agent that may not write lists what it would keep."""

WRITERS = frozenset(
    {"remember", "memory", "block_memory", "memory_write", "memory_edit", "update_founder_info"}
)
"""The tools that write memory: what they were called with waits no more."""

REFUSED = ("permission_denied", "approval_denied", "no_answer")

_LISTED = re.compile(rf"{re.escape(CANDIDATES)}[^\n]*\n(?P<list>(?:[ \t]*[-*•] [^\n]*\n?)+)")
_PLANNED = re.compile(
    r"(?:^|[.;:,\n] *|\band )(?:and )?(?:then|next|afterwards|after that|later|finally),? (?P<step>[^.;?!\n]{8,200})",
    re.IGNORECASE,
)
_PROMISED = re.compile(
    r"\b(?:next steps?:|next,? i(?:'ll| will)|i(?:'ll| will) (?:then|next)) ?(?P<step>[^.;?!\n]{8,200})", re.I
)
_OPEN_TASK = re.compile(r"^\s*[-*] \[ \] (?P<step>[^\n]{3,200})", re.MULTILINE)
_QUESTION = re.compile(r"(?P<step>[^.!?\n]{8,200})\?")


def tools_state(history: Sequence[Message]) -> ToolsState:
    """Return the state of the tools after the last turn: executing (a call without a result), blocked (a refusal),
    verify (an unknown outcome), active (used), or standby."""
    last = _last_turn(history)
    results = [message for message in last if message.role == "tool"]
    answered = {message.tool_call_id for message in results}
    if any(call.id not in answered for message in last for call in message.tool_calls):
        return "Executing"
    if results and results[-1].error_kind in REFUSED:
        return "Blocked"
    if any(message.error_kind == "outcome_unknown" for message in results):
        return "Verifying"
    return "Active" if results else "Standby"


def pending_count(history: Sequence[Message]) -> int:
    """Return the number of memories that the agent proposed and that are not written yet."""
    waiting = 0
    for message in history:
        if message.role == "tool" and message.name in WRITERS and not message.error:
            waiting = 0
        elif message.role == "assistant":
            waiting += sum(1 for _ in proposed_memories(message.content))
    return waiting


def proposed_memories(text: str) -> Iterator[str]:
    """The memories that an answer proposes."""
    for found in _LISTED.finditer(text):
        for line in found["list"].splitlines():
            if said := line.strip(" \t-*•"):
                yield said


def next_step(history: Sequence[Message], message: str) -> str:
    """Return the next step in the words of the conversation: the message's own "then …", the agent's announcement, an
    open task of its list, or the question that waits for an answer; "" when there is none."""
    answers = [one.content for one in history if one.role == "assistant" and one.content.strip()]
    last = answers[-1] if answers else ""
    for pattern, text in ((_PLANNED, message), (_PROMISED, last), (_OPEN_TASK, last), (_QUESTION, message)):
        if found := pattern.search(text):
            step = " ".join(found["step"].split())
            return f"Answer: {step}" if pattern is _QUESTION else step
    return ""


def _last_turn(history: Sequence[Message]) -> Sequence[Message]:
    """The messages from the last one of a person on."""
    begins = [at for at, message in enumerate(history) if message.role == "user"]
    return history[begins[-1] :] if begins else ()
