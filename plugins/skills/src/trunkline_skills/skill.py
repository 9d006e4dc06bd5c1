"""A skill as its ``SKILL.md``: frontmatter in YAML between two lines ``---``, and the text below. Pure."""

import re
from dataclasses import dataclass
from typing import Any

LONGEST_FILE, LONGEST_FRONT = 64 * 1024, 8 * 1024
"""Characters of a ``SKILL.md``, and of its frontmatter."""

LONGEST_DESCRIPTION, SHOWN = 1024, 200
"""Characters that a description may have, and how many of them are listed."""

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that can be used. ``folder`` is its path in memory, from the root."""

    name: str
    folder: str
    description: str
    body: str

    @property
    def line(self) -> str:
        """Return the skill's line in the list."""
        said = self.description
        return f"- {self.name}: {said if len(said) <= SHOWN else said[: SHOWN - 1] + '…'}"


@dataclass(frozen=True, slots=True)
class SkillIssue:
    """A skill that cannot be used, and why."""

    name: str
    folder: str
    why: str

    @property
    def line(self) -> str:
        """Return the problem's line in a report."""
        return f"- {self.folder}/SKILL.md: {self.why}"


def parse_skill(name: str, folder: str, text: str) -> Skill | SkillIssue:
    """The skill of a file, or what is wrong with it. The folder's name is the skill's, whatever the file says."""
    if len(text) > LONGEST_FILE:
        return SkillIssue(name, folder, f"it has {len(text)} characters; {LONGEST_FILE} is the limit.")
    front = _FRONT.match(text)
    if front is None:
        return SkillIssue(name, folder, "it does not begin with frontmatter between two lines ---.")
    if len(front[1]) > LONGEST_FRONT:
        return SkillIssue(name, folder, f"its frontmatter has more than {LONGEST_FRONT} characters.")
    try:
        table = _parse_frontmatter(front[1])
    except ValueError as error:
        return SkillIssue(name, folder, f"its frontmatter is not YAML: {error}")
    said = table.get("description") if isinstance(table, dict) else None
    if not isinstance(said, str) or not said.strip():
        return SkillIssue(name, folder, "its frontmatter has no description.")
    description = " ".join(said.split())
    if len(description) > LONGEST_DESCRIPTION:
        return SkillIssue(name, folder, f"its description has more than {LONGEST_DESCRIPTION} characters.")
    return Skill(name, folder, description, text[front.end() :].strip())


def _parse_frontmatter(front: str) -> Any:
    """Texts, lists and tables alone. What else YAML can say is not read: a merge (``<<``) of merges grows to any size,
    and a tag may be given what it cannot be. Raises ValueError."""
    import yaml

    try:
        return yaml.BaseLoader(front).get_single_data()
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise ValueError(f"{error.problem or 'it cannot be read'}{place}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("it cannot be read.") from error
