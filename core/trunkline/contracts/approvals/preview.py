"""Previews of calls, on which a person decides: a diff, a command, a message, the arguments.

Pure. Whatever a model wrote is shown and never obeyed: control characters, and such as nobody sees, are made visible,
nothing grows beyond a bound, and what is left out is counted.
"""

import difflib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trunkline._util.text import one_line, printable, reveal_invisible
from trunkline.contracts.approvals.messages import ApprovalDetail

MAX_TEXT = 6_000
"""Characters of a preview that are shown: the beginning, and a quarter of them from the end."""

MAX_LINES = 20_000
"""Lines above which two texts are not compared: that would take longer than anybody waits."""

SHORT, LONGEST_LINE = 200, 1_000
"""Characters of an argument, and of all of them, where they are put into one line."""

PreviewKind = Literal["diff", "command", "message", "arguments", "question"]


def preview(kind: PreviewKind, text: str) -> ApprovalDetail:
    """A preview of any text."""
    shown = reveal_invisible(printable(text))
    if len(shown) <= MAX_TEXT:
        return ApprovalDetail(kind=kind, text=shown)
    head, tail = MAX_TEXT - MAX_TEXT // 4, MAX_TEXT // 4
    left_out = len(shown) - head - tail
    middle = f"\n[… {left_out} characters are not shown …]\n"
    return ApprovalDetail(kind=kind, text=shown[:head] + middle + shown[-tail:], left_out=left_out)


def diff_preview(path: str, before: str | None, after: str | None) -> ApprovalDetail:
    """Describe the change of a file as a diff. ``before`` is None for one that is not there, ``after`` for one that
    would be gone.
    """
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > MAX_LINES:
        return preview("diff", f"{path}: {len(old)} lines would become {len(new)} lines:\n{after or ''}")
    lines = difflib.unified_diff(
        old,
        new,
        "(no file)" if before is None else path,
        "(no file)" if after is None else path,
        lineterm="",
    )
    return preview("diff", "\n".join(lines) or f"{path}: nothing would change")


def command_preview(argv: Sequence[str], where: str = "") -> ApprovalDetail:
    """A program with its arguments, each quoted as a shell would need it."""
    return preview("command", shlex.join(argv) + (f"\n(in {where})" if where else ""))


def message_preview(to: str, text: str) -> ApprovalDetail:
    """Something that would be sent."""
    return preview("message", f"to: {to}\n\n{text}")


def arguments_preview(arguments: Mapping[str, Any]) -> ApprovalDetail:
    """The arguments one by one."""
    return preview("arguments", "\n".join(_argument(name, value) for name, value in arguments.items()))


def arguments_summary(arguments: Mapping[str, Any]) -> str:
    """Arguments in one line, each cut when it is long, and so is the whole. Names may be a model's words as well."""
    each = (f"{_cut(one_line(name))}={_cut(one_line(_written(value)))}" for name, value in arguments.items())
    return _cut(", ".join(each), LONGEST_LINE)


def _argument(name: str, value: Any) -> str:
    text = printable(value if isinstance(value, str) else _written(value))
    if "\n" not in text:
        return f"{one_line(name)}: {text}"
    return f"{one_line(name)}:\n" + "\n".join(f"  {line}" for line in text.splitlines())


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _cut(text: str, most: int = SHORT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _lines(text: str | None) -> list[str]:
    """The lines as they are told apart in a diff; a last one without an end says so."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]} (no line end)"]
