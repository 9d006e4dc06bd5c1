"""The model calls of learning, within the budget of one turn. Without a model the answer is None, and heuristics
decide."""

import logging
from collections.abc import Mapping, Sequence

from trunkline import CompletionError
from trunkline.api.bus import Bus
from trunkline.api.model import BlockCompleter
from trunkline_learning import prompts
from trunkline_learning.facts import Fact, FactFinding
from trunkline_learning.playbook import AddStrategy, MarkStrategy, PlaybookOperation, Strategy
from trunkline_learning.preferences import LearningPreferences
from trunkline_learning.turns import FinishedTurn
from trunkline_learning.verdicts import Verdict

log = logging.getLogger(__name__)

PURPOSE = "learn"
MAX_TOKENS = 1_000
MODEL_TIMEOUT = 120.0
"""Seconds to wait for a model."""

MILLION = 1_000_000


class LearningModelClient:
    """Asks a model about one turn; ``spent`` is in millionths of a US dollar. A question without an answer returns
    None."""

    def __init__(self, bus: Bus, turn: FinishedTurn, choices: LearningPreferences) -> None:
        source = turn.source
        self._model = BlockCompleter(bus, source.block, conversation=source.conversation, turn=source.turn)
        self._choices = choices
        self._turn = turn
        self.spent = 0

    async def extract_facts(self, known: Sequence[Fact]) -> list[FactFinding] | None:
        """The facts of the turn, each with what it repeats and what it contradicts."""
        answer = await self._ask(prompts.facts_prompt(self._turn, known))
        return None if answer is None else prompts.parse_facts(answer, self._turn, known)

    async def reflect(
        self, turn: FinishedTurn, verdict: Verdict, next_message: str, playbook: Mapping[str, Strategy]
    ) -> tuple[list[AddStrategy], list[MarkStrategy]] | None:
        """The Reflector: insights, and marks for the strategies that the turn had."""
        answer = await self._ask(prompts.reflection_prompt(turn, verdict, next_message, playbook))
        return None if answer is None else prompts.parse_reflection(answer, turn, verdict)

    async def curate(
        self, insights: Sequence[AddStrategy], near: Sequence[Strategy]
    ) -> list[PlaybookOperation] | None:
        """The Curator: what to do with insights that look like what is there."""
        answer = await self._ask(prompts.curation_prompt(insights, near))
        return None if answer is None else prompts.parse_operations(answer, insights, near)

    async def _ask(self, question: str) -> str | None:
        left = round(self._choices.max_cost_usd * MILLION) - self.spent
        if not self._choices.uses_model or left <= 0:
            return None
        try:
            answer = await self._model.complete(
                question,
                purpose=PURPOSE,
                model=self._choices.model,
                max_tokens=MAX_TOKENS,
                temperature=0.0,
                max_cost=left,
                timeout=MODEL_TIMEOUT,
            )
        except CompletionError as error:
            log.info("turn %s is learned from without a model: %s", self._turn.source.turn, error)
            return None
        self.spent += answer.cost
        return answer.text
