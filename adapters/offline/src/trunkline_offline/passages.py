"""Reads what ``memory_search`` found, whatever its exact shape, and quotes it. No I/O in here."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_QUOTE = 600


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A place in memory. ``line`` counts from 1; None when it is not known."""

    path: str
    line: int | None
    text: str

    def quoted(self) -> str:
        """The passage as a quotation that says where it stands."""
        lines = self.text.strip()[:MAX_QUOTE].splitlines()
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return "\n".join(f"> {line}" for line in lines) + f"\n> ({where})"


def passages_of(result: str) -> list[QuotedPassage]:
    """The passages of one tool result: a JSON list of hits, an object that holds one, or plain text.

    Conversations are left out, and what was learned of their turns: they hold the very question, and quoting it would
    answer nothing.
    """
    try:
        found = json.loads(result)
    except ValueError:
        found = _from_lines(result)
    hits = found if isinstance(found, list) else next((v for v in _values(found) if isinstance(v, list)), [])
    passages = [_passage(hit) for hit in hits if isinstance(hit, dict)]
    return [passage for passage in passages if passage.text.strip() and not _is_conversation(passage.path)]


def rank(groups: Sequence[Sequence[QuotedPassage]], words: Sequence[str]) -> list[QuotedPassage]:
    """All passages, each once; those with most of the words first, else in the order in which they came."""
    unique = list(dict.fromkeys(passage for passages in groups for passage in passages))
    return sorted(unique, key=lambda passage: -sum(1 for word in words if word in passage.text.lower()))


def _passage(hit: dict[str, Any]) -> QuotedPassage:
    line = hit.get("line")
    text = str(hit.get("context") or hit.get("content") or hit.get("text") or "")
    return QuotedPassage(str(hit.get("path", "")), line if isinstance(line, int) else None, text)


def _from_lines(result: str) -> list[dict[str, Any]]:
    """Hits out of plain text of the form ``path:line: content``."""
    matches = re.findall(r"^(\S[^:\n]*):(\d+):\s*(.+)$", result, re.MULTILINE)
    return [{"path": path, "line": int(line), "content": content} for path, line, content in matches]


def _values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []


def _is_conversation(path: str) -> bool:
    return ("conversations/" in path and path.endswith(".jsonl")) or "/episodes/" in path
