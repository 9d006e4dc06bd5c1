"""How things are put into a few words: calls, durations, tokens, ends of turns. Pure functions."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UnsetType

from trunkline import ApprovalSettled, ToolCall, TurnEnded, Usage, chosen
from trunkline.messages.approvals import DEADLINE, decider
from trunkline_terminal.screen import Answer, Prompt

_ENDINGS = {
    "cancelled": "Cancelled.",
    "max_tokens": "The answer was cut at the token limit.",
    "content_filter": "The provider's content filter ended the answer.",
    "stopped": "A stop rule ended the turn.",
    "tool_calls": "The turn waits for a tool that this terminal does not have.",
}

_HINTS = {
    "provider_error": '"trunkline doctor --online" (in a shell) asks the provider; /trace names the fault.',
    "internal": '"trunkline doctor" (in a shell) may know why; so does logs/chat.log in the home folder.',
    "context_overflow": "/new begins a new conversation.",
}


def short(text: str, width: int) -> str:
    """The text on one line of at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def call_label(call: ToolCall, width: int = 72) -> str:
    """A tool call as ``name key=value …``."""
    return short(f"{call.name} {_arguments(call.arguments)}".rstrip(), width)


def _arguments(arguments: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in arguments.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return (
            short(value, 40)
            if value and " " not in value
            else json.dumps(short(value, 40), ensure_ascii=False)
        )
    return short(json.dumps(value, ensure_ascii=False, default=str), 40)


_ANSWERS: Mapping[str, Answer] = {
    "y": "once", "yes": "once", "n": "no", "no": "no",
    "c": "conversation", "conversation": "conversation", "a": "always", "always": "always",
}  # fmt: skip


def answer(text: str, *, wide: bool) -> Answer | None:
    """What a typed line says to a call that waits. Only a word of the list is an answer; nothing is none."""
    found = _ANSWERS.get(text.strip().lower())
    return None if found in ("conversation", "always") and not wide else found


YES_OR_NO: Prompt[Answer] = Prompt("Allow? y/n", "Allow? y/n", partial(answer, wide=False), "Answer y or n")
HOW_FAR: Prompt[Answer] = Prompt(
    "Allow? y: this once, c: in this conversation, a: always, n: no",
    "Allow? y/c/a/n",
    partial(answer, wide=True),
    "Answer y, c, a or n",
)


def reply(options: Sequence[str]) -> Prompt[str]:
    """What is asked for when an agent wants to know something: any words, or the number of a proposal."""
    how = f"Your answer, or 1 to {len(options)}" if options else "Your answer"
    return Prompt(how, "Answer", lambda line: chosen(line, options) or None, "Answer in a line")


def seconds(duration: float) -> str:
    """A duration in seconds: ``0.2 s``, ``14 s``, ``2 min 5 s``."""
    if duration < 10:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def tokens(usage: Usage) -> str:
    """``123 in / 45 out``, or nothing when the provider counted nothing."""
    if not (usage.input_tokens or usage.output_tokens):
        return ""
    return f"{usage.input_tokens} in / {usage.output_tokens} out"


def ending(ended: TurnEnded) -> str:
    """What to say about how a turn ended, or nothing when it simply ended."""
    if failed(ended):
        sentence = ended.sentence or "The turn failed."
        return f"{sentence} ({ended.code})" if ended.code else sentence
    return _ENDINGS.get(ended.reason, "")


def hint(ended: TurnEnded) -> str:
    """What a person can do about how a turn ended, or nothing when there is nothing to say."""
    return _HINTS.get(ended.code or "", "")


def settled(event: ApprovalSettled, *, question: bool = False) -> str:
    """Who decided about a call, or answered its question."""
    if question:
        if event.by == DEADLINE:
            return "Nobody answered in time."
        return f"{'Answered' if event.allow else 'Left unanswered'} by {decider(event.by)}."
    if event.by == DEADLINE:
        return "Nobody decided in time, so it was denied."
    far = "" if isinstance(event.scope, UnsetType) else f" ({event.scope})"
    return f"{'Allowed' if event.allow else 'Denied'} by {decider(event.by)}{far}."


def failed(ended: TurnEnded) -> bool:
    """Whether the turn did not do what it was asked."""
    return ended.code is not None or ended.reason == "error"


def trace_id(traceparent: str | None) -> str:
    """The trace id within a W3C ``traceparent``, or nothing."""
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 else ""
