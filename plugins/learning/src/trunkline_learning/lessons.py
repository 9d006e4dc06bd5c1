"""Extract the lessons of a turn for the playbook: Reflector and Curator of the paper, with a model or without. Writes
nothing."""

from collections.abc import Sequence

import msgspec

from trunkline.api.nlp import similarity
from trunkline_learning import heuristic_reflector
from trunkline_learning.model_client import LearningModelClient
from trunkline_learning.model_folders import model_folder
from trunkline_learning.playbook import AddStrategy, MarkStrategy, PlaybookOperation
from trunkline_learning.playbook_reader import PlaybookReader
from trunkline_learning.preferences import LearningPreferences
from trunkline_learning.turn_reader import TurnPair
from trunkline_learning.turns import FinishedTurn
from trunkline_learning.verdicts import Verdict, VerdictChange, judge_turn, verdict_change

ALIKE = 0.3
"""From here on a strategy looks enough like an insight to be shown to the Curator."""

SHOWN = 10


class TurnLessons(msgspec.Struct, frozen=True, kw_only=True):
    """The lessons of a turn, before they are merged.

    ``verdict`` is what the turn shows by itself, ``change`` what it makes of the verdict on the turn before it; None
    when that stays. ``delta`` is for the playbook of the model that answered the turn, ``delta_before`` for that of the
    one before.
    """

    verdict: Verdict
    delta: tuple[PlaybookOperation, ...] = ()
    change: VerdictChange | None = None
    delta_before: tuple[PlaybookOperation, ...] = ()


class LessonExtractor:
    """Draws the lessons of a turn and, with what it shows, of the turn before it."""

    def __init__(
        self, library: PlaybookReader, model: LearningModelClient, choices: LearningPreferences
    ) -> None:
        self._library = library
        self._model = model
        self._choices = choices

    async def extract(self, turns: TurnPair) -> TurnLessons:
        """A turn is judged when it ends, if its tools or answer failed, and by what the person says next. Their word
        counts more: where it says otherwise, the first verdict and its marks are taken back."""
        turn, before, markers = turns.turn, turns.before, self._choices.markers
        verdict = judge_turn(turn, markers)
        delta = (*self._errors(turn), *await self._outcome(turn, verdict, ""))
        change = None if before is None or not turn.by_person else verdict_change(before, turn.task, markers)
        if before is None or change is None:
            return TurnLessons(verdict=verdict, delta=delta)
        later = await self._outcome(before, change.now, turn.task)
        if (
            change.was != "unknown" and not self._choices.uses_model
        ):  # a model tags by causes, not by the outcome
            later = (*heuristic_reflector.undo_marks(before, change.was), *later)
        return TurnLessons(verdict=verdict, delta=delta, change=change, delta_before=later)

    def _errors(self, turn: FinishedTurn) -> tuple[PlaybookOperation, ...]:
        return heuristic_reflector.failure_lessons(turn) if self._choices.playbook else ()

    async def _outcome(
        self, turn: FinishedTurn, verdict: Verdict, next_message: str
    ) -> tuple[PlaybookOperation, ...]:
        """Return the operations that follow from a verdict; none for the verdict ``unknown``."""
        if verdict == "unknown" or not self._choices.playbook:
            return ()
        had = await self._library.read_strategies(turn)
        reflected = await self._model.reflect(turn, verdict, next_message, had)
        if reflected is None:
            return heuristic_reflector.outcome_operations(turn, verdict)
        insights, marks = reflected
        return (*_complete_marks(turn, marks), *await self._curated(turn, insights))

    async def _curated(
        self, turn: FinishedTurn, insights: Sequence[AddStrategy]
    ) -> tuple[PlaybookOperation, ...]:
        """Return the operations for new insights. If similar strategies exist, the Curator decides, else the insights
        are added."""
        if not insights:
            return ()
        book = (await self._library.read_playbook(model_folder(turn.model))).strategies.values()
        near = [
            one
            for one in book
            if one.is_for(turn.source.audience)
            and any(similarity(one.strategy, add.strategy) >= ALIKE for add in insights)
        ]
        operations = await self._model.curate(insights, near[:SHOWN]) if near else None
        return tuple(insights if operations is None else operations)


def _complete_marks(turn: FinishedTurn, marks: Sequence[MarkStrategy]) -> tuple[MarkStrategy, ...]:
    """The Reflector's marks; what it left out was neither helpful nor harmful."""
    tagged = {mark.id for mark in marks}
    return (*marks, *(MarkStrategy(id=id, tag="neutral") for id in turn.strategies if id not in tagged))
