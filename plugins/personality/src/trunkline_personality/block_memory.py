"""A block's ``memory.md``: a summary of what it knows now, and under *History* what it knew before.

A new summary never throws the earlier one away: that moves into the history. What is too old to stay
there is told of, and stays in the file's git history.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from trunkline.api.text import format_local_time
from trunkline_personality.placeholders import without_placeholders

HISTORY = "## History"
HISTORY_CHARACTERS = 12_000
"""Characters of history that stay in the file."""

_HISTORY = re.compile(r"(?m)^##[ \t]+History[ \t]*$\n?")
_SECTION = re.compile(r"(?m)^(?=### )")
_OLDER = re.compile(r"(?m)^\(Older [^\n]*\)\n*")
_UPDATED = re.compile(r"(?m)^Last updated: [^\n]*\n*")
_TITLE = re.compile(r"\A\s*# [^\n]*\n*")


@dataclass(frozen=True, slots=True)
class BlockMemoryFile:
    """The file, taken apart. ``history`` are its sections, newest first."""

    title: str
    summary: str
    history: tuple[str, ...] = ()
    older: bool = False
    """True when sections were dropped from the file at some time."""

    @classmethod
    def parse(cls, text: str, title: str = "Memory") -> "BlockMemoryFile":
        """A file's text, taken apart."""
        text = text.replace("\r\n", "\n")
        body, *rest = _HISTORY.split(text, maxsplit=1)
        history = rest[0] if rest else ""
        found = _TITLE.match(body)
        heading = found[0].strip().removeprefix("# ") if found else title
        sections = [
            part.strip() for part in _SECTION.split(_OLDER.sub("", history)) if without_placeholders(part)
        ]
        summary = _UPDATED.sub("", _TITLE.sub("", body)).strip()
        return cls(heading, without_placeholders(summary), tuple(sections), bool(_OLDER.search(history)))

    def with_note(self, text: str, at: datetime) -> "BlockMemoryFile":
        """With one more section of history, and the same summary."""
        return BlockMemoryFile(
            self.title, self.summary, (_format_section(text, at), *self.history), self.older
        )

    def with_summary(self, summary: str, at: datetime) -> "BlockMemoryFile":
        """With another summary. The earlier one becomes the newest section, unless the new one holds all of it."""
        kept = self.history
        if self.summary and _normalized(self.summary) not in _normalized(summary):
            kept = (_format_section(self.summary, at, "until then"), *kept)
        return BlockMemoryFile(self.title, summary.strip(), kept, self.older)

    def text(self, at: datetime) -> str:
        """The file's text."""
        sections, older = _within_limit(self.history)
        parts = [
            f"# {self.title}",
            f"Last updated: {format_local_time(at)}",
            self.summary,
            HISTORY,
            *sections,
        ]
        if older or self.older:
            parts.append("(Older sections are in this file's own history: memory_history, path memory.md.)")
        return "\n\n".join(part for part in parts if part) + "\n"


def _within_limit(sections: tuple[str, ...]) -> tuple[list[str], bool]:
    """The newest sections that fit, at least one; and whether any is left out."""
    kept: list[str] = []
    room = HISTORY_CHARACTERS
    for section in sections:
        room -= len(section)
        if kept and room < 0:
            return kept, True
        kept.append(section)
    return kept, False


def _format_section(text: str, at: datetime, what: str = "") -> str:
    body = re.sub(
        r"(?m)^(#{1,3})(?=\s)", "####", text.strip()
    )  # headings of its own must not end the section
    return f"### {format_local_time(at)} {what}".rstrip() + f"\n\n{body}"


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())
