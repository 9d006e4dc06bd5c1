"""Classify a failed tool call and suggest a remedy: by the kind of the error, else by its words. Pure.

The platform's own errors have a kind (``TOOL_ERROR_KINDS``). For a tool that only says that it failed, and for a
program that printed its errors, the words decide.
"""

import re
from collections.abc import Mapping

from trunkline.api.text import unwrap_tool_result
from trunkline_learning.turns import ToolUse

ADVICE: Mapping[str, str] = {
    "string_not_found": "Read the file before you replace text in it, and copy the text exactly as it stands there, "
    "spaces included.",
    "file_not_found": "List the folder or search for the name before you use a path, instead of guessing it.",
    "permission_denied": "Look whether you may do it before you try; when it is refused, ask the person instead of "
    "trying another way.",
    "approval_denied": "A person said no to this: ask what they want instead, and do not call it again unasked.",
    "no_answer": "Do not ask the same again when nobody answers; go on without it, or say what is missing.",
    "invalid_arguments": "Read the tool's parameters before the call: names, types and which ones are required.",
    "json_error": "Build JSON with a tool that writes it, and check it before you hand it on: quotes, commas, no "
    "comments.",
    "syntax_error": "Check code for its syntax before you run it, brackets, quotes and indentation first.",
    "timeout": "Split long work into smaller steps, or run it in the background with a longer limit.",
    "limit_exceeded": "Work on less at once: smaller inputs, fewer processes, results written to a file piece by "
    "piece.",
    "too_large": "Ask for a part: a range of lines, a page, a narrower search; send large content in pieces.",
    "conflict": "Read what is there now before you write, and go on from that instead of repeating the old change.",
    "rate_limited": "Wait before you call it again, and do several things with one call where that is possible.",
    "outcome_unknown": "Find out whether the first call had its effect before you make it a second time.",
    "unavailable": "Try once more later; if it stays away, tell the person what cannot be reached.",
    "unsupported": "It cannot be done here as it is: tell the person what has to be installed or configured.",
    "api_error": "When a service answers with an error, read what it says and wait; do not ask again blindly.",
    "command_failed": "Read the output of a command that failed from its first error on, and fix that before you run "
    "it again.",
    "internal": "The tool itself is broken: take another way, and tell the person under which number the log has it.",
}
"""The advice for each kind of failure."""

_NAMES: Mapping[str, str] = {
    "not_found": "file_not_found",
    "no_match": "string_not_found",
    "upstream_error": "api_error",
}
"""The names under which lessons are stored, for kinds that the platform calls otherwise."""

_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "string_not_found",
        re.compile(
            r"(string|text|old_string|match).{0,40}not (found|in)|does not (occur|contain)|no match|is not in "
        ),
    ),
    (
        "permission_denied",
        re.compile(r"permission denied|not permitted|not allowed|forbidden|access denied|read-only"),
    ),
    (
        "file_not_found",
        re.compile(r"no such file|file not found|does not exist|there is no (file|folder|such)|cannot find"),
    ),
    (
        "syntax_error",
        re.compile(
            r"syntax ?error|invalid syntax|unexpected (token|indent|eof)|parse error|indentationerror"
        ),
    ),
    ("timeout", re.compile(r"timed? ?out|took too long|deadline|did not answer in time")),
    (
        "json_error",
        re.compile(
            r"json(decodeerror)?\b.*(error|invalid|expect|decode|malformed)|invalid json|not valid json"
        ),
    ),
    (
        "api_error",
        re.compile(
            r"\b(4\d\d|5\d\d)\b.{0,30}(error|status|response)|status(code)? ?:? ?(4|5)\d\d|rate.?limit|"
            r"connection (refused|reset)|api error|unauthorized"
        ),
    ),
    (
        "command_failed",
        re.compile(
            r"exit(ed)?( with)? (code|status)? ?[1-9]|command (not found|failed)|returned non-zero|traceback"
        ),
    ),
)

_RUNNING = re.compile(r"execute|bash|shell|program|^run_")
_EXITED = re.compile(r"exit code [1-9]\d*\b.*--- stderr", re.DOTALL)


def classify_failure(tool: ToolUse) -> str | None:
    """The name of the failure, one of ``ADVICE``; None when there is none, or nothing to learn from it."""
    said = unwrap_tool_result(tool.output).casefold()
    if not tool.failed:
        program = _RUNNING.search(tool.name) and _EXITED.match(said)
        return (_by_words(said) or "command_failed") if program else None
    if tool.kind in ("", "failed"):
        return _by_words(said)
    if tool.kind == "invalid_arguments" and _by_words(said) == "json_error":
        return "json_error"
    name = _NAMES.get(tool.kind, tool.kind)
    return name if name in ADVICE else None


def _by_words(text: str) -> str | None:
    return next((name for name, words in _WORDS if words.search(text)), None)
