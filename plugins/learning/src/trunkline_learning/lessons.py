"""What a turn teaches the playbook: Reflector and Curator of the paper, with a model or without. Writes nothing."""

from collections.abc import Sequence

import msgspec

from trunkline.words.likeness import similarity
from trunkline_learning import reflecting
from trunkline_learning.asking import Teacher
from trunkline_learning.library import Library
from trunkline_learning.models import folder_of
from trunkline_learning.playbook import Add, Mark, Operation
from trunkline_learning.preferences import Learning
from trunkline_learning.reading import Turns
from trunkline_learning.turns import FinishedTurn
from trunkline_learning.verdicts import Verdict, judged, judged_by

ALIKE = 0.3
"""From here on a strategy looks enough like an insight to be shown to the Curator."""

SHOWN = 10


class Taught(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn teaches, before it is merged.

    ``verdict`` is the turn's own; ``verdict_before`` what it shows of the turn before it. ``delta`` is for the playbook
    of the model that answered the turn, ``delta_before`` for that of the one before.
    """

    verdict: Verdict
    delta: tuple[Operation, ...] = ()
    verdict_before: Verdict = "unknown"
    delta_before: tuple[Operation, ...] = ()


class Lessons:
    """Draws the lessons of a turn and, with what it shows, of the turn before it."""

    def __init__(self, library: Library, teacher: Teacher, choices: Learning) -> None:
        self._library = library
        self._teacher = teacher
        self._choices = choices

    async def of(self, turns: Turns) -> Taught:
        """A turn is judged once: when it ends if its tools or answer failed, else by what the person says next."""
        turn, before, markers = turns.turn, turns.before, self._choices.markers
        verdict = judged(turn, markers)
        delta = (*self._errors(turn), *await self._outcome(turn, verdict, ""))
        if before is None or not turn.by_person:
            return Taught(verdict=verdict, delta=delta)
        said = judged_by(turn.task, markers)
        known = judged(before, markers) != "unknown"  # then its lessons were drawn when it ended
        later = () if known else await self._outcome(before, said, turn.task)
        return Taught(verdict=verdict, delta=delta, verdict_before=said, delta_before=later)

    def _errors(self, turn: FinishedTurn) -> tuple[Operation, ...]:
        return reflecting.lessons(turn) if self._choices.playbook else ()

    async def _outcome(self, turn: FinishedTurn, verdict: Verdict, said_next: str) -> tuple[Operation, ...]:
        """What follows from a verdict; nothing while there is none."""
        if verdict == "unknown" or not self._choices.playbook:
            return ()
        had = await self._library.strategies(turn)
        reflected = await self._teacher.reflection(turn, verdict, said_next, had)
        if reflected is None:
            return reflecting.consequences(turn, verdict)
        insights, marks = reflected
        return (*_every_mark(turn, marks), *await self._curated(turn, insights))

    async def _curated(self, turn: FinishedTurn, insights: Sequence[Add]) -> tuple[Operation, ...]:
        """What becomes of insights: the Curator says when there are strategies like them, else they are added."""
        if not insights:
            return ()
        book = (await self._library.book(folder_of(turn.model))).strategies.values()
        near = [
            one for one in book if any(similarity(one.strategy, add.strategy) >= ALIKE for add in insights)
        ]
        operations = await self._teacher.curation(insights, near[:SHOWN]) if near else None
        return tuple(insights if operations is None else operations)


def _every_mark(turn: FinishedTurn, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """The Reflector's marks; what it left out was neither helpful nor harmful."""
    tagged = {mark.id for mark in marks}
    return (*marks, *(Mark(id=id, tag="neutral") for id in turn.strategies if id not in tagged))
