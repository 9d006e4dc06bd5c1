"""What ``trunkline doctor`` finds out about skills: those whose ``SKILL.md`` cannot be used."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline_skills.skill import Issue, Skill, skill_in

PLACES = ("skills/*/SKILL.md", "blocks/*/skills/*/SKILL.md")
"""Where skills lie in memory."""


def check_of(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for the memory root."""

    async def check() -> HealthResult:
        return await anyio.to_thread.run_sync(_looked_at, memory)

    return check


def _looked_at(memory: Path) -> HealthResult:
    files = [file for place in PLACES for file in sorted(memory.glob(place))]
    wrong = [one.line.removeprefix("- ") for file in files if isinstance(one := _read(memory, file), Issue)]
    if wrong:
        return HealthResult("warning", f"Skills that cannot be used: {' '.join(wrong)}", "Mend the files.")
    return HealthResult("ok", f"All skills can be used ({len(files)})")


def _read(memory: Path, file: Path) -> Skill | Issue:
    folder = str(file.parent.relative_to(memory))
    if not file.is_file():
        return Issue(file.parent.name, folder, "it cannot be read: it is no regular file")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Issue(file.parent.name, folder, f"it cannot be read: {error}")
    return skill_in(file.parent.name, folder, text)
