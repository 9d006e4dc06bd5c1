"""A summary in a block's ``memory.md``. What the file had before moves into its history; no line is dropped. Pure."""

import re
from datetime import datetime

from trunkline.api.text import format_local_time

HISTORY = "## History"

_HISTORY = re.compile(r"(?m)^##[ \t]+History[ \t]*$\n?")
_TITLE = re.compile(r"\A\s*# [^\n]*\n*")
_UPDATED = re.compile(r"(?m)^Last updated: [^\n]*\n*")
_PLACEHOLDER = re.compile(r"(?m)^\([^\n]*\)[ \t]*$\n?")
_HEADING = re.compile(r"(?m)^#{1,3}(?=\s)")


def summary_of(text: str) -> str:
    """Return the summary that the file has now, without title, date and placeholders."""
    body = _HISTORY.split(text.replace("\r\n", "\n"), maxsplit=1)[0]
    return _PLACEHOLDER.sub("", _UPDATED.sub("", _TITLE.sub("", body))).strip()


def with_summary(text: str, summary: str, at: datetime, title: str) -> str:
    """Return the file with another summary. The earlier one becomes the newest section of the history, unless the new
    one has all of it."""
    text = text.replace("\r\n", "\n")
    body, *rest = _HISTORY.split(text, maxsplit=1)
    heading = _TITLE.match(body)
    earlier = summary_of(text)
    sections = [_section(earlier, at)] if _normalized(earlier) not in _normalized(summary) else []
    history = [*sections, rest[0].strip()] if rest else sections
    parts = [
        heading[0].strip() if heading else f"# {title}",
        f"Last updated: {format_local_time(at)}",
        _HEADING.sub("####", summary.strip()),
        HISTORY,
        *history,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(text: str, at: datetime) -> str:
    return f"### {format_local_time(at)} until then\n\n{_HEADING.sub('####', text)}"


def _normalized(text: str) -> str:
    return " ".join(_HEADING.sub("####", text).casefold().split())
