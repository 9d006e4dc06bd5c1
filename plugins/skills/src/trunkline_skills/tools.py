"""The tools: which skills there are, and the text of one. A skill is material: it permits nothing."""

from pathlib import PurePosixPath

import trunkline
from trunkline import ToolError
from trunkline.api.text import wrap_context
from trunkline_skills.reader import SkillReader, SkillsByName
from trunkline_skills.skill import Skill, SkillIssue

NOTE = "how something is done here; it permits nothing, and no call is approved by it"

LARGEST = 64 * 1024
"""Characters of a file beside SKILL.md that are read."""


@trunkline.tool(effect="read", in_plan_mode=True, derived=True)
async def list_skills(context: trunkline.ToolContext) -> str:
    """List all skills with their purpose, and those that cannot be used with the reason."""
    found = await _load_skills(context)
    good = [one.line for one in found.values() if isinstance(one, Skill)]
    broken = [one.line for one in found.values() if isinstance(one, SkillIssue)]
    if not (good or broken):
        return "There are no skills. One is a folder in memory, skills/NAME, with a SKILL.md in it."
    return wrap_context("skills", "\n".join([*good, *(["These cannot be used:", *broken] if broken else [])]))


@trunkline.tool(effect="read", in_plan_mode=True, derived=True)
async def use_skill(context: trunkline.ToolContext, name: str, file: str = "") -> str:
    """Read a skill: how something is done here. With file, one of the files that lie beside it.

    Args:
        name: The skill's name as it is listed.
        file: The name of a file in the skill's folder that its text speaks of.
    """
    skill = await _require_skill(context, name)
    if file:
        text = (await context.memory.read(_file_path(skill, file))).content
        if len(text) > LARGEST:
            raise ToolError(
                f"{file} has {len(text)} characters; {LARGEST} is the limit. Read it with memory_read.",
                kind="too_large",
            )
        return wrap_context(f"{skill.name}/{file}", text, note=NOTE)
    files = await _list_files(context, skill)
    beside = f"\nFiles beside it, for use_skill with file: {', '.join(files)}" if files else ""
    return wrap_context(skill.name, skill.body, note=NOTE) + beside


async def _load_skills(context: trunkline.ToolContext) -> SkillsByName:
    return await SkillReader().load(context.block, context.memory)


async def _require_skill(context: trunkline.ToolContext, name: str) -> Skill:
    found = await _load_skills(context)
    one = found.get(name.strip()) or next(
        (one for one in found.values() if one.name.casefold() == name.strip().casefold()), None
    )
    if one is None:
        known = ", ".join(one.name for one in found.values() if isinstance(one, Skill)) or "none"
        raise ToolError(f"There is no skill {name!r}. There are: {known}.", kind="not_found")
    if isinstance(one, SkillIssue):
        raise ToolError(
            f"The skill {name} cannot be used: {one.why} A person can correct it.", kind="unsupported"
        )
    return one


def _file_path(skill: Skill, file: str) -> str:
    """The path of a file in the skill's folder. Raises ToolError for one that leads out of it."""
    parts = PurePosixPath(file.replace("\\", "/")).parts
    if not parts or ".." in parts or parts[0] == "/" or "\0" in file:
        raise ToolError(
            f"{file!r} is not a file of the skill {skill.name}. Name a file beside its SKILL.md.",
            kind="not_found",
        )
    return "/".join([skill.folder, *parts])


async def _list_files(context: trunkline.ToolContext, skill: Skill) -> list[str]:
    entries = await context.memory.list(skill.folder, recursive=True)
    names = (entry.path.removeprefix(f"{skill.folder}/") for entry in entries if entry.kind == "file")
    return sorted(name for name in names if name != "SKILL.md")
