"""Previews of calls, on which a person decides: a diff, a command, a message, the arguments.

Pure. A model's text is displayed and never interpreted: control characters and invisible characters are made visible,
the length is bounded, and the omitted characters are counted.
"""

import difflib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trunkline._util.text import one_line, printable, reveal_invisible
from trunkline.contracts.approvals.messages import ApprovalDetail

MAX_TEXT = 6_000
"""The largest number of characters shown: three quarters from the beginning, one quarter from the end."""

MAX_LINES = 20_000
"""The largest number of lines of two texts that are compared; comparing more takes too long."""

SHORT, LONGEST_LINE = 200, 1_000
"""The largest number of characters of one argument, and of all of them, in a one-line summary."""

PreviewKind = Literal["diff", "command", "message", "arguments", "question"]


def preview(kind: PreviewKind, text: str) -> ApprovalDetail:
    """Return a preview of a text."""
    shown = reveal_invisible(printable(text))
    if len(shown) <= MAX_TEXT:
        return ApprovalDetail(kind=kind, text=shown)
    head, tail = MAX_TEXT - MAX_TEXT // 4, MAX_TEXT // 4
    left_out = len(shown) - head - tail
    middle = f"\n[… {left_out} characters are not shown …]\n"
    return ApprovalDetail(kind=kind, text=shown[:head] + middle + shown[-tail:], left_out=left_out)


def diff_preview(path: str, before: str | None, after: str | None) -> ApprovalDetail:
    """Return a preview of a file's change as a diff. ``before`` is None if the file does not exist, ``after`` if the
    call would delete it.
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
    """Return a preview of a program with its arguments, each quoted for a shell."""
    return preview("command", shlex.join(argv) + (f"\n(in {where})" if where else ""))


def message_preview(to: str, text: str) -> ApprovalDetail:
    """Return a preview of a message that the call would send."""
    return preview("message", f"to: {to}\n\n{text}")


def arguments_preview(arguments: Mapping[str, Any]) -> ApprovalDetail:
    """Return a preview that lists the arguments one by one."""
    return preview("arguments", "\n".join(_argument(name, value) for name, value in arguments.items()))


def arguments_summary(arguments: Mapping[str, Any]) -> str:
    """Return the arguments in one line, each shortened if it is long, and the whole too. A model may have chosen the
    names as well as the values.
    """
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
    """Return the lines for a diff; a last line without a line end is marked."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]} (no line end)"]
