"""A type of agents as its file: frontmatter in YAML, and the instructions below. Pure."""

from dataclasses import dataclass
from typing import Any

from trunkline.api.agents import AgentDefinition, is_agent_name
from trunkline.api.text import parse_frontmatter

LONGEST_FILE, LONGEST_DESCRIPTION = 64 * 1024, 1024
"""Characters of a file, and of a description."""

FIELDS = ("description", "model", "tools", "memory", "timeout")


@dataclass(frozen=True, slots=True)
class AgentType:
    """A type that can be used."""

    name: str
    description: str
    definition: AgentDefinition

    @property
    def line(self) -> str:
        """Return the type's line in the list."""
        return f"- {self.name}: {self.description}"


@dataclass(frozen=True, slots=True)
class AgentTypeIssue:
    """A type that cannot be used, and why. ``path`` is that of its file."""

    name: str
    path: str
    why: str

    @property
    def line(self) -> str:
        """Return the problem's line in a report."""
        return f"- {self.path}: {self.why}"


def parse_agent_type(name: str, path: str, text: str) -> AgentType | AgentTypeIssue:
    """Return the type of a file, or what is wrong with it. The file's name is the type's."""
    try:
        return _parsed(name, text)
    except ValueError as error:
        return AgentTypeIssue(name, path, str(error))


def _parsed(name: str, text: str) -> AgentType:
    if not is_agent_name(name):
        raise ValueError("a type is named by a-z, 0-9, - and _, with at most 40 characters.")
    if len(text) > LONGEST_FILE:
        raise ValueError(f"it has {len(text)} characters; {LONGEST_FILE} is the limit.")
    table, body = parse_frontmatter(text)
    unknown = [field for field in table if field not in FIELDS]
    if unknown:
        raise ValueError(f"its frontmatter has {unknown[0]!r}. It may have {', '.join(FIELDS)}.")
    description = " ".join(_text(table, "description").split())
    if not description:
        raise ValueError("its frontmatter has no description.")
    if len(description) > LONGEST_DESCRIPTION:
        raise ValueError(f"its description has more than {LONGEST_DESCRIPTION} characters.")
    definition = AgentDefinition(
        type=name,
        instructions=body,
        model=_text(table, "model") or None,
        tools=_list(table, "tools"),
        memory=_list(table, "memory"),
        timeout=_seconds(table),
    )
    return AgentType(name, description, definition)


def _text(table: dict[str, Any], field: str) -> str:
    found = table.get(field, "")
    if not isinstance(found, str):
        raise ValueError(f"its {field} is no text.")
    return found.strip()


def _list(table: dict[str, Any], field: str) -> tuple[str, ...] | None:
    found = table.get(field)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"its {field} are no list of texts.")
    return tuple(found)


def _seconds(table: dict[str, Any]) -> float | None:
    found = _text(table, "timeout")
    if not found:
        return None
    if not found.isdigit() or int(found) == 0:
        raise ValueError(f"its timeout is {found!r}, which is no whole number of seconds above 0.")
    return float(found)
