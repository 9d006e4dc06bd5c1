"""What a turn teaches without a model: kinds of failure by the words of errors, successes by the tools (MN-F23). Pure.

The *Reflector* of the paper in its plain form; ``asking`` has the one that asks a model. What it finds is a delta for
the *Curator* (``playbook.merged``).
"""

import re
from collections.abc import Iterator

from trunkline_learning.playbook import Add, Mark, Operation, Tag
from trunkline_learning.turns import FinishedTurn, ToolUse
from trunkline_learning.verdicts import Verdict
from trunkline_learning.words import cut

SURE_OF_FAILURE, SURE_OF_SUCCESS = 0.9, 0.8

_KINDS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "string_not_found",
        re.compile(
            r"(string|text|old_string|match).{0,40}not (found|in)|does not (occur|contain)|no match|is not in "
        ),
        "Read the file before you replace text in it, and copy the text exactly as it stands there, spaces included.",
    ),
    (
        "permission_denied",
        re.compile(r"permission denied|not permitted|not allowed|forbidden|access denied|read-only"),
        "Look whether you may do it before you try; when it is refused, ask the person instead of trying another way.",
    ),
    (
        "file_not_found",
        re.compile(r"no such file|file not found|does not exist|there is no (file|folder|such)|cannot find"),
        "List the folder or search for the name before you use a path, instead of guessing it.",
    ),
    (
        "syntax_error",
        re.compile(
            r"syntax ?error|invalid syntax|unexpected (token|indent|eof)|parse error|indentationerror"
        ),
        "Check code for its syntax before you run it, brackets, quotes and indentation first.",
    ),
    (
        "timeout",
        re.compile(r"timed? ?out|took too long|deadline|did not answer in time"),
        "Split long work into smaller steps, or run it in the background with a longer limit.",
    ),
    (
        "json_error",
        re.compile(
            r"json(decodeerror)?\b.*(error|invalid|expect|decode|malformed)|invalid json|not valid json"
        ),
        "Build JSON with a tool that writes it, and check it before you hand it on: quotes, commas, no comments.",
    ),
    (
        "api_error",
        re.compile(
            r"\b(4\d\d|5\d\d)\b.{0,30}(error|status|response)|status(code)? ?:? ?(4|5)\d\d|rate.?limit|"
            r"connection (refused|reset)|api error|unauthorized"
        ),
        "When a service answers with an error, read what it says and wait; do not ask again blindly.",
    ),
    (
        "command_failed",
        re.compile(
            r"exit(ed)?( with)? (code|status)? ?[1-9]|command (not found|failed)|returned non-zero|traceback"
        ),
        "Read the output of a command that failed from its first error on, and mend that before you run it again.",
    ),
)

_EDITING = re.compile(r"(file_edit|edit|replace)")
_RUNNING = re.compile(r"(execute|bash|shell|run_command|program)")


def failure_kinds(turn: FinishedTurn) -> tuple[str, ...]:
    """What kinds of failure the turn's tools met, each once."""
    kinds = (_kind(tool) for tool in turn.tools if tool.failed)
    return tuple(dict.fromkeys(name for name, _ in filter(None, kinds)))


def lessons(turn: FinishedTurn) -> tuple[Operation, ...]:
    """What the turn's own errors teach, whatever the person says of it."""
    found: dict[str, Operation] = {}
    for tool in turn.tools:
        kind = _kind(tool) if tool.failed else None
        if kind is not None:
            name, advice = kind
            found.setdefault(
                name,
                Add(
                    section="pitfalls",
                    strategy=advice,
                    context=f"{tool.name}: {name.replace('_', ' ')}",
                    tools=(tool.name,),
                    outcome="failure",
                    confidence=SURE_OF_FAILURE,
                ),
            )
    return tuple(found.values())


def consequences(turn: FinishedTurn, verdict: Verdict) -> tuple[Operation, ...]:
    """What follows from a verdict: marks for the strategies that the turn had, and what worked for which task."""
    tag: Tag = {"success": "helpful", "failure": "harmful", "unknown": "neutral"}[verdict]  # type: ignore[assignment]
    marks = tuple(Mark(id=id, tag=tag) for id in turn.strategies)
    return (*marks, *_successes(turn)) if verdict == "success" else marks


def _successes(turn: FinishedTurn) -> Iterator[Operation]:
    names = [tool.name for tool in turn.tools if not tool.failed]
    for name in dict.fromkeys(names):
        if _EDITING.search(name) or _RUNNING.search(name):
            steps = " → ".join(dict.fromkeys(names))
            yield Add(
                section="tools", strategy=f"{steps} worked for: {cut(turn.task, 120)}", context=cut(turn.task, 200),
                tools=(name,), outcome="success", confidence=SURE_OF_SUCCESS,
            )  # fmt: skip
            return


def _kind(tool: ToolUse) -> tuple[str, str] | None:
    said = tool.output.casefold()
    return next(((name, advice) for name, words, advice in _KINDS if words.search(said)), None)
