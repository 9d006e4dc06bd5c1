"""The health check of skills: reports each ``SKILL.md`` that cannot be used."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline.api.memory import block_folder
from trunkline_skills.skill import Skill, SkillIssue, parse_skill

LOCATIONS = ("skills/*/SKILL.md", f"{block_folder('*')}/skills/*/SKILL.md")
"""The folder of skills in memory."""


def skill_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for the memory root."""

    async def check() -> HealthResult:
        return await anyio.to_thread.run_sync(_issues, memory)

    return check


def _issues(memory: Path) -> HealthResult:
    files = [file for place in LOCATIONS for file in sorted(memory.glob(place))]
    wrong = [
        one.line.removeprefix("- ") for file in files if isinstance(one := _read(memory, file), SkillIssue)
    ]
    if wrong:
        return HealthResult("warning", f"Skills that cannot be used: {' '.join(wrong)}", "Correct the files.")
    return HealthResult("ok", f"All skills can be used ({len(files)})")


def _read(memory: Path, file: Path) -> Skill | SkillIssue:
    folder = str(file.parent.relative_to(memory))
    if not file.is_file():
        return SkillIssue(file.parent.name, folder, "it cannot be read: it is not a regular file")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return SkillIssue(file.parent.name, folder, f"it cannot be read: {error}")
    return parse_skill(file.parent.name, folder, text)
