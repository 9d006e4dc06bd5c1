"""Short texts for calls, durations, tokens and ends of turns. Pure functions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import UnsetType

from trunkline import ToolCall
from trunkline.api.channel import (
    DECIDED_BY_DEADLINE,
    Answerer,
    AnswerWords,
    Sentences,
    chosen,
    describe_decider,
    format_result,
)
from trunkline.api.model import Usage
from trunkline.api.text import display_width, to_local_time, unwrap_tool_result
from trunkline.api.turn import ApprovalRequested, ApprovalSettled, TurnEnded
from trunkline_terminal.screen import ApprovalAnswer, Prompt

_ENDINGS = {
    "cancelled": "Cancelled.",
    "max_tokens": "The answer was cut at the token limit.",
    "content_filter": "The provider's content filter ended the answer.",
    "stopped": "A stop rule ended the turn.",
    "tool_calls": "The turn waits for a tool that this terminal does not have.",
}

_HINTS = {
    "provider_error": 'Run "trunkline doctor --online" in a shell to test the provider; /trace shows the error.',
    "internal": 'Run "trunkline doctor" in a shell, or see logs/chat.log in the home folder.',
    "context_overflow": "/new begins a new conversation.",
}


def shorten(text: str, width: int) -> str:
    """The text on one line of at most ``width`` columns."""
    line = " ".join(text.split())
    return line if len(line) <= width and display_width(line) <= width else f"{cut_columns(line, width - 1)}…"


def fit(line: str, width: int) -> str:
    """A line of at most ``width`` columns, with its spaces as they are."""
    flat = line.replace("\n", " ").replace("\t", " ")
    return flat if display_width(flat) <= width else f"{cut_columns(flat, width - 1)}…"


def cut_columns(text: str, width: int) -> str:
    """The beginning of a text that takes at most ``width`` columns."""
    taken = 0
    for at, letter in enumerate(text):
        taken += display_width(letter)
        if taken > width:
            return text[:at]
    return text


def call_label(call: ToolCall, width: int = 72) -> str:
    """A tool call as ``name key=value …``."""
    return shorten(f"{call.name} {_arguments(call.arguments)}".rstrip(), width)


def _arguments(arguments: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in arguments.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return (
            shorten(value, 40)
            if value and " " not in value
            else json.dumps(shorten(value, 40), ensure_ascii=False)
        )
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 40)


_ANSWERS: Mapping[str | None, ApprovalAnswer] = {
    "no": "no",
    "once": "once",
    "conversation": "conversation",
    "always": "always",
}


def parse_answer(text: str, words: AnswerWords, *, wide: bool) -> ApprovalAnswer | None:
    """Parse a typed line as the answer to a waiting call. Only the listed words are answers; an empty line is not
    one."""
    found = _ANSWERS.get(words.read(text))
    return None if found in ("conversation", "always") and not wide else found


def approval_prompt(say: Sentences, *, wide: bool) -> Prompt[ApprovalAnswer]:
    """Return the prompt for a waiting call, whose keys are those that it reads. ``wide`` offers wider scopes."""
    words, kind = say.words("terminal.words"), "scope" if wide else "allow"
    how, keys, again = (say(f"terminal.{kind}{part}", **words.shown) for part in ("", ".keys", ".again"))
    return Prompt(how, keys, partial(parse_answer, words=words, wide=wide), again)


def question_prompt(options: Sequence[str], say: Sentences) -> Prompt[str]:
    """Return the prompt for an agent's question: any words, or the number of a proposed answer."""
    how = say("terminal.answer.options", count=len(options)) if options else say("terminal.answer")
    keys, again = say("terminal.answer.keys"), say("terminal.answer.again")
    return Prompt(how, keys, lambda line: chosen(line, options) or None, again)


OFFLINE = "offline"
"""The adapter that answers without a model."""

FOLDED_LINES = 3
"""Lines of a tool's result that are shown before it is folded."""


def fold_output(output: str, width: int) -> list[str]:
    """The first lines of a tool's result, and how to see the others."""
    lines = [line for line in format_result(unwrap_tool_result(output)).strip().splitlines() if line.strip()]
    shown = [shorten(line, width) for line in lines[:FOLDED_LINES]]
    more = len(lines) - len(shown)
    cut = more or any(len(line) > width for line in lines[:FOLDED_LINES])
    left = f"… {more} more line{'s' if more != 1 else ''}: /show" if more else "… /show shows it whole"
    return [*shown, left] if cut else shown


def format_deadline(at: datetime, now: datetime | None = None) -> str:
    """A time to come, on the clock here: ``23:41 (5 minutes)``, with its date when it is on another day."""
    here, now = to_local_time(at), to_local_time(now or datetime.now(UTC))
    clock = f"{here:%H:%M}" if here.date() == now.date() else f"{here:%Y-%m-%d %H:%M}"
    return f"{clock} ({_span((here - now).total_seconds())})"


def _span(duration: float) -> str:
    """Seconds to come in one unit: ``5 minutes``, ``1 day``."""
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if round(duration / size) >= 1 and (duration >= size or name == "minute"):
            count = round(duration / size)
            return f"{count} {name}{'s' if count != 1 else ''}"
    return f"{max(round(duration), 0)} seconds"


def format_duration(duration: float) -> str:
    """A duration in seconds: ``0.2 s``, ``14 s``, ``2 min 5 s``."""
    if duration < 10:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_usage(usage: Usage) -> str:
    """``123 in (90 cached) / 45 out``, or nothing when the provider counted nothing."""
    if not (usage.input_tokens or usage.output_tokens):
        return ""
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens} in{cached} / {usage.output_tokens} out"


def answerer_line(answerer: Answerer) -> str:
    """Return the line that names the answering model at the start of a session; "" when it is unknown."""
    if answerer.problem:
        return f"No model answers here: {answerer.problem}"
    if answerer.label == OFFLINE:
        return "No model is set up: you get what memory holds. trunkline init sets one up."
    return f"{answerer.label} answers." if answerer.label else ""


def format_count(count: int) -> str:
    """A count of tokens in few characters: ``812``, ``1.7k``, ``128k``, ``1M``."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return (
                f"{count / size:.1f}".removesuffix(".0") + unit
                if count < 10 * size
                else f"{count // size}{unit}"
            )
    return str(count)


def format_context(used: int, window: int) -> str:
    """Return the used part of the model's window, such as ``context 1.7k of 128k``; empty when it is not counted."""
    if not used:
        return ""
    return (
        f"context {format_count(used)} of {format_count(window)}"
        if window
        else f"context {format_count(used)}"
    )


def format_cost(cost: int | None) -> str:
    """Millionths of a dollar as dollars; nothing where the price is not known, or nothing was paid."""
    if not cost:
        return ""
    return f"${cost / 1_000_000:.4f}" if cost < 100_000 else f"${cost / 1_000_000:.2f}"


MIN_TITLE_CHARS = 12
"""Characters that a title keeps in the status line when there is little room."""


def status_bar(first: Iterable[str], title: str, rest: Iterable[str], width: int) -> str:
    """The parts of the status line on ``width`` characters. What a title takes is what the others leave."""
    first, rest = list(first), list(rest)
    others = sum(len(part) + len(_BETWEEN) for part in (*first, *rest))
    return shorten(
        _BETWEEN.join((*first, shorten(title, max(width - others, MIN_TITLE_CHARS)), *rest)), width
    )


_BETWEEN = " · "


def ending_text(ended: TurnEnded, say: Sentences) -> str:
    """Return a sentence about how a turn ended; empty when it simply ended."""
    if is_failed(ended):
        sentence = say.translate(ended.sentence or "The turn failed.")
        sentence = f"{sentence} ({ended.code})" if ended.code else sentence
        return f"{sentence}\n{ended.detail}" if ended.detail else sentence
    return _ENDINGS.get(ended.reason, "")


def ending_hint(ended: TurnEnded) -> str:
    """Return a hint for a turn that did not simply end; empty when there is nothing to do."""
    return _HINTS.get(ended.code or "", "")


def settlement_text(event: ApprovalSettled, say: Sentences, *, question: bool = False) -> str:
    """Return who decided about a call or answered its question."""
    late, by = event.by == DECIDED_BY_DEADLINE, describe_decider(event.by, say)
    if question:
        if late:
            return f"{say('outcome.unanswered.late')}."
        return f"{say('outcome.answered' if event.allow else 'outcome.unanswered', by=by)}."
    if late:
        return f"{say('outcome.late')}."
    far = "" if isinstance(event.scope, UnsetType) else f" ({say(f'scope.{event.scope}')})"
    return f"{say('outcome.allowed' if event.allow else 'outcome.denied', by=by)}{far}."


def decide_elsewhere_text(event: ApprovalRequested, *, question: bool = False) -> str:
    """Return the command that decides a call or answers its question, for places where nobody can be asked."""
    if isinstance(event.id, UnsetType):
        return "Nobody can be asked here. Decide about this in an interactive terminal or another channel."
    by = "" if isinstance(event.expires_at, UnsetType) else f" by {format_deadline(event.expires_at)}"
    if question:
        return f"Nobody can be asked here. Answer{by}: trunkline approvals answer {event.id} TEXT"
    return (
        f"Nobody can be asked here. Decide{by}: trunkline approvals approve {event.id} (or deny {event.id})"
    )


def is_failed(ended: TurnEnded) -> bool:
    """Report whether the turn did not do what it was asked."""
    return ended.code is not None or ended.reason == "error"


def trace_id(traceparent: str | None) -> str:
    """The trace id within a W3C ``traceparent``, or nothing."""
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 else ""
