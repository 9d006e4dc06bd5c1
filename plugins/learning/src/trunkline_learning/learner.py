"""Learns from one turn: finds what it teaches, which may take a model's time, then has it merged in one commit."""

import logging

from trunkline import LifespanContext
from trunkline.api.turn import TurnFact
from trunkline_learning import files
from trunkline_learning.errors import WriteConflict
from trunkline_learning.fact_store import SHOWN, FactStore, is_echo
from trunkline_learning.facts import FactFinding, extract_facts
from trunkline_learning.lessons import LessonExtractor
from trunkline_learning.merger import LearningPosition, Merger
from trunkline_learning.milestones import milestone_of
from trunkline_learning.model_client import LearningModelClient
from trunkline_learning.playbook_reader import PlaybookReader
from trunkline_learning.preferences import LearningPreferences
from trunkline_learning.store import LearningStore
from trunkline_learning.turn_reader import TurnReader
from trunkline_learning.turns import FinishedTurn

log = logging.getLogger(__name__)

MAX_QUERY_CHARACTERS = 400
"""Letters of a message that similar facts are looked for with."""

MERGE_ATTEMPTS = 8
"""The largest number of attempts to commit when others write in between."""


class Learner:
    """Learns from turns, one at a time. All its state is in memory's files, so it can be recreated at any time."""

    def __init__(self, context: LifespanContext) -> None:
        self._bus = context.bus
        self._store = LearningStore(context.bus)
        self._reader = TurnReader(context.bus)
        self._fact_store = FactStore(context)

    async def learn(self, fact: TurnFact, choices: LearningPreferences) -> bool:
        """Learn from a turn; False when there was nothing to do.

        Raises BusError and ToolError, and WriteConflict when others write to the same files all the time.
        """
        if fact.turn in (await self._position()).turns:
            return False
        turns = await self._reader.read(fact)
        if turns is None:
            return False
        model = LearningModelClient(self._bus, turns.turn, choices)
        library = PlaybookReader(self._store)
        if choices.facts:
            await self._store_facts(turns.turn, model)
        taught = await LessonExtractor(library, model, choices).extract(turns)
        if choices.milestones and taught.change is not None and taught.change.now == "success":
            await self._store_milestone(turns.before)
        merger = Merger(self._store, library, choices)
        for _ in range(MERGE_ATTEMPTS):
            try:
                return await merger.merge(turns, taught)
            except WriteConflict:
                log.info("turn %s is merged again: its files were changed meanwhile", fact.turn)
        raise WriteConflict

    async def _store_facts(self, turn: FinishedTurn, model: LearningModelClient) -> None:
        """Keep the facts of what a person said: found by a model, else by words."""
        if not turn.by_person or not turn.task.strip():
            return
        known = (await self._fact_store.find_similar(turn.source, turn.task[:MAX_QUERY_CHARACTERS]))[:SHOWN]
        found = await model.extract_facts(known)
        if found is None:
            found = [FactFinding(fact) for fact in extract_facts(turn)]
        known_texts = (*turn.facts, *(one.text for one in known))
        await self._fact_store.store([one for one in found if not is_echo(one.fact, known_texts)])

    async def _store_milestone(self, turn: FinishedTurn | None) -> None:
        """Keep a note of a task that the person says is done."""
        note = milestone_of(turn) if turn is not None else None
        if note is not None:
            await self._fact_store.store_milestone(note)

    async def _position(self) -> LearningPosition:
        text = await self._store.text(files.POSITION)
        return (files.decode(text, LearningPosition) if text is not None else None) or LearningPosition()
