"""The skills that a block sees: those of its own folder ``skills/``, and those of ``skills/`` at the root of memory.

Of two with one name the block's own counts. A file is read again when it has changed.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from trunkline import Memory, MemoryEntry, ToolError
from trunkline_skills.skill import Skill, SkillIssue, parse_skill

SKILL_FOLDERS = ("skills", "/skills")
"""The block's own, then everybody's; the paths are as ``Memory`` has them."""

MAX_SKILLS = 200
"""The most skills that are read of one folder; more are reported as an issue."""

NAME = re.compile(r"[\w][\w .-]{0,63}")

SkillsByName = dict[str, Skill | SkillIssue]
_SkillCache = dict[tuple[str, str, datetime, int], Skill | SkillIssue]


class SkillReader:
    """Remembers what it has read, by block and by what a listing says of the file."""

    def __init__(self) -> None:
        self._known: _SkillCache = {}

    async def load(self, block: str, memory: Memory) -> SkillsByName:
        """All skills and issues by name, in the order of their names."""
        found: SkillsByName = {}
        now: _SkillCache = {}
        for place in reversed(SKILL_FOLDERS):
            for entry in await _files(memory, place):
                key = (block, entry.path, entry.modified_at, entry.size)
                one = self._known.get(key) or await _read(memory, entry.path)
                found[one.name] = now[key] = one
        others = {key: one for key, one in self._known.items() if key[0] != block}
        self._known = {**others, **now}
        return dict(sorted(found.items()))


async def _files(memory: Memory, place: str) -> Iterable[MemoryEntry]:
    try:
        entries = await memory.list(place, recursive=True)
    except ToolError:  # there is no such folder, or this block may not read it
        return ()
    depth = place.strip("/").count("/") + 3
    files = [
        entry
        for entry in entries
        if entry.kind == "file" and entry.path.endswith("/SKILL.md")
        and len(entry.path.strip("/").split("/")) == depth
    ]  # fmt: skip
    return sorted(files, key=lambda entry: entry.path)[:MAX_SKILLS]


async def _read(memory: Memory, path: str) -> Skill | SkillIssue:
    folder = path.removesuffix("/SKILL.md")
    name = folder.rpartition("/")[2]
    if NAME.fullmatch(name) is None:
        return SkillIssue(
            name, folder, "the name of a skill's folder has letters, digits, spaces, points and dashes."
        )
    try:
        return parse_skill(name, folder, (await memory.read(path)).content)
    except ToolError as error:
        return SkillIssue(name, folder, f"it cannot be read: {error}")
