"""The list of skills in a turn's context: names and descriptions, never their texts."""

from collections.abc import Sequence

from trunkline import ContextPart, ToolError, TurnInfo
from trunkline.api.turn import StatusShown
from trunkline_skills.reader import SkillReader
from trunkline_skills.skill import Skill

USAGE = "Skills, each with what it is for. When one fits what you are asked, read it with use_skill before you begin."


class SkillContext:
    """The context source. What it tells is data: a skill has no more rights than any other file."""

    name = "skills"

    def __init__(self) -> None:
        self._library = SkillReader()

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | StatusShown]:
        """Yield no context if the block has no skills."""
        try:
            found = await self._library.load(turn.request.block, turn.memory)
        except ToolError:
            return ()
        lines = [one.line for one in found.values() if isinstance(one, Skill)]
        broken = len(found) - len(lines)
        if not lines:
            return ()
        if broken:
            lines.append(f"({broken} more cannot be used; list_skills says why.)")
        text = "\n".join([USAGE, *lines])
        return [ContextPart(source="skills", text=text, priority=45, share=0.1, rest="list_skills has all.")]
