"""A skill as its ``SKILL.md``: frontmatter in YAML between two lines ``---``, and the text below. Pure."""

from dataclasses import dataclass

from trunkline.api.text import parse_frontmatter

LONGEST_FILE = 64 * 1024
"""Characters of a ``SKILL.md``."""

LONGEST_DESCRIPTION, SHOWN = 1024, 200
"""Characters that a description may have, and how many of them are listed."""


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
    try:
        table, body = parse_frontmatter(text)
    except ValueError as error:
        return SkillIssue(name, folder, str(error))
    said = table.get("description")
    if not isinstance(said, str) or not said.strip():
        return SkillIssue(name, folder, "its frontmatter has no description.")
    description = " ".join(said.split())
    if len(description) > LONGEST_DESCRIPTION:
        return SkillIssue(name, folder, f"its description has more than {LONGEST_DESCRIPTION} characters.")
    return Skill(name, folder, description, body)
