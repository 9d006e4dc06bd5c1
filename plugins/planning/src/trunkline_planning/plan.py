"""A plan as its Markdown file: a title, a state, sections with entries. Pure, and patient with what a person edited.

The file is the plan; there is no other copy. Entries are put into their section and everything else stays as it is.
"""

import re
from dataclasses import dataclass

from trunkline import ToolError

SECTIONS = ("Steps", "Files", "Risks")
_STATE = re.compile(r"^State: (\w+)$", re.MULTILINE)
_TITLE = re.compile(r"^# Plan: (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"^(\d+)\. ")

LONGEST = 2_000
"""Characters of one piece of text in an entry."""


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan's text."""

    text: str

    @classmethod
    def new(cls, task: str, context: str) -> "PlanDocument":
        """Return a plan without entries."""
        about = f"\n{plan_text(context)}\n" if context.strip() else ""
        sections = "".join(f"\n## {name}\n" for name in SECTIONS)
        return cls(f"# Plan: {one_line(task)}\n\nState: planning\n{about}{sections}")

    @property
    def title(self) -> str:
        found = _TITLE.search(self.text)
        return found[1] if found else "(no title)"

    @property
    def state(self) -> str:
        """``planning``, ``approved`` or ``abandoned``."""
        found = _STATE.search(self.text)
        return found[1] if found else "planning"

    def with_state(self, state: str) -> "PlanDocument":
        """The same in another state."""
        return PlanDocument(_STATE.sub(f"State: {state}", self.text, count=1))

    def entries(self, section: str) -> list[str]:
        """The entries of a section, each with the lines that belong to it."""
        return self._split(section)[1]

    def with_step(self, number: int, entry: str) -> "PlanDocument":
        """A step put where its number belongs, in place of the one that has the number."""
        steps = [step for step in self.entries("Steps") if _number(step) != number]
        steps.append(f"{number}. {entry}")
        return self._with("Steps", sorted(steps, key=_number))

    def with_entry(self, section: str, entry: str) -> "PlanDocument":
        """An entry more, unless it is there."""
        known = self.entries(section)
        return self if f"- {entry}" in known else self._with(section, [*known, f"- {entry}"])

    def _with(self, section: str, entries: list[str]) -> "PlanDocument":
        before, _, after = self._split(section)
        body = "\n" + "\n".join(entries) + "\n"
        return PlanDocument(f"{before}## {section}\n{body}{after}")

    def _split(self, section: str) -> tuple[str, list[str], str]:
        """Split the document into the text before the section, its entries, and the text after it."""
        found = re.search(rf"^## {section}[ \t]*\n?", self.text, re.MULTILINE)
        if found is None:
            return self.text.rstrip("\n") + "\n\n", [], ""
        following = re.search(r"^## ", self.text[found.end() :], re.MULTILINE)
        end = found.end() + following.start() if following else len(self.text)
        after = "\n" + self.text[end:] if following else ""
        return self.text[: found.start()], _entries(self.text[found.end() : end]), after


def one_line(text: str) -> str:
    """Text as one line. Raises ToolError for none, or too much."""
    joined = " ".join(text.split())
    if not joined or len(joined) > LONGEST:
        raise ToolError(
            f"Give 1 to {LONGEST} characters of text. Nothing was written.", kind="invalid_arguments"
        )
    return joined


def plan_text(text: str) -> str:
    """Text in which no line is taken for a heading of the plan, or its state."""
    lines = [row.strip() for row in text.strip().splitlines()]
    return "\n".join(f"> {row}".rstrip() for row in lines)


def _entries(body: str) -> list[str]:
    entries: list[str] = []
    for row in body.splitlines():
        if not row.strip():
            continue
        if entries and row.startswith((" ", "\t")):
            entries[-1] += f"\n{row}"
        else:
            entries.append(row.rstrip())
    return entries


def _number(step: str) -> int:
    found = _NUMBER.match(step)
    return int(found[1]) if found else 0
