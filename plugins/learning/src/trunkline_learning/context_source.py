"""The context source of learning. Nothing is told unless learning is on, and until then its modules are not loaded."""

from collections.abc import Sequence

from trunkline import ContextGap, ContextPart, TurnInfo
from trunkline_learning import files, preferences

PREFERENCES, PROFILE = f"/{preferences.FILE}", f"/{files.PROFILE}"


class LearningContextSource:
    """The context source."""

    name = "learning"
    files = (PREFERENCES, PROFILE)

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | ContextGap]:
        """The parts that fit this turn; fewer when memory does not answer in time, and a note of what is missing."""
        given = turn.files.get(PREFERENCES)
        choices = preferences.parse_preferences(given.content if given is not None else None)
        if not (choices.on and choices.max_tokens and turn.block.memory.enabled):
            return ()
        from trunkline_learning.context import learned_context

        return await learned_context(turn, choices, turn.files.get(PROFILE))
