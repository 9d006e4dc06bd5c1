"""``MEMORY.md``: short entries with a line ``---`` between them, within a budget of characters. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trunkline import ToolError

BUDGET = 2200
"""Characters that the file may have: it is before the model in every turn."""

_BETWEEN = re.compile(r"(?m)^[ \t]*(?:-{3,}|§)[ \t]*$\n?")
"""The separators of entries; ``§`` is that of files of an earlier program."""

SEPARATOR = "\n---\n"

HINT = "(What every conversation must know:"
"""The beginning of the text that this file has in a new memory."""


@dataclass(frozen=True, slots=True)
class CuratedMemory:
    """The entries of the file, in order."""

    texts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "CuratedMemory":
        """The entries in a file's text; the hint that a new file begins with is none."""
        pieces = map(str.strip, _BETWEEN.split(text.replace("\r\n", "\n")))
        return cls(tuple(entry for entry in pieces if entry and not entry.startswith(HINT)))

    @property
    def text(self) -> str:
        """The file's text."""
        return SEPARATOR.join(self.texts) + "\n" if self.texts else ""

    def added(self, text: str) -> "CuratedMemory":
        """With one more. Raises ToolError when it is blank or does not fit; the same one twice changes nothing."""
        entry = _entry(text)
        if any(_alike(entry) == _alike(other) for other in self.texts):
            return self
        return self._within_budget((*self.texts, entry), f"adding these {len(entry)} characters")

    def replaced(self, old: str, text: str) -> "CuratedMemory":
        """With ``text`` in place of the one entry that holds ``old``. Raises ToolError."""
        at, entry = self._find(old), _entry(text)
        others = (*self.texts[:at], *self.texts[at + 1 :])
        if any(_alike(entry) == _alike(other) for other in others):
            raise ToolError(
                "Another entry has the same text. Remove this one instead. Nothing was changed.",
                kind="conflict",
            )
        return self._within_budget((*self.texts[:at], entry, *self.texts[at + 1 :]), "this replacement")

    def removed(self, old: str) -> "CuratedMemory":
        """Without the one entry that holds ``old``. Raises ToolError."""
        at = self._find(old)
        return CuratedMemory((*self.texts[:at], *self.texts[at + 1 :]))

    def _find(self, old: str) -> int:
        if not old.strip():
            raise ToolError("Give a part of the entry in old_text.", kind="invalid_arguments")
        found = [number for number, entry in enumerate(self.texts) if old.strip() in entry]
        if not found:
            raise ToolError(
                f"No entry contains {old.strip()!r}. The entries are:\n{self.listing}", kind="no_match"
            )
        if len(found) > 1:
            raise ToolError(
                f"{len(found)} entries contain {old.strip()!r}: give more of the intended entry.\n{self.listing}",
                kind="no_match",
            )
        return found[0]

    def _within_budget(self, texts: Sequence[str], what: str) -> "CuratedMemory":
        new = CuratedMemory(tuple(texts))
        if (size := len(new.text)) > BUDGET and size > len(self.text):
            raise ToolError(
                f"MEMORY.md holds at most {BUDGET} characters; with {what} it would have {size}. Nothing was changed. "
                f"Consolidate first: join entries that belong together, shorten them, remove what is out of date "
                f"(replace and remove), then try again. The entries are:\n{self.listing}",
                kind="too_large",
            )
        return new

    @property
    def listing(self) -> str:
        """Every entry with its size."""
        lines = [f"{number}. ({len(entry)} characters) {entry}" for number, entry in enumerate(self.texts, 1)]
        return "\n".join(lines) or "(none)"


def _entry(text: str) -> str:
    entry = text.replace("\r\n", "\n").strip()
    if not entry:
        raise ToolError("An entry must not be empty. Nothing was changed.", kind="invalid_arguments")
    if entry.startswith(HINT):
        raise ToolError(
            "That is the hint of an empty file, not an entry. Nothing was changed.", kind="invalid_arguments"
        )
    if _BETWEEN.search(entry):
        raise ToolError(
            "A line of --- separates entries, so no entry can contain one. Nothing was changed.",
            kind="invalid_arguments",
        )
    return entry


def _alike(entry: str) -> str:
    return " ".join(entry.casefold().split())
