"""Facts as chunks of memory: what is known is not kept twice, what contradicts it is linked and shown.

A fact is a chunk of type ``fact``, ``preference``, ``decision`` or ``pattern`` whose source is ``learned``; its fields
say who said it and when. Nothing that was kept is ever overwritten.
"""

import logging
from collections.abc import Iterable, Sequence

import msgspec

from trunkline import LifespanContext, Memory, ToolError
from trunkline.api.nlp import similarity
from trunkline_learning.contradictions import conflict_kind, contradicted_facts, is_same_statement
from trunkline_learning.errors import TRANSIENT_KINDS
from trunkline_learning.fact_chunks import CONTRADICTS, FORGET_REASON, LEARNED, MILESTONE, fact_of
from trunkline_learning.facts import Fact, FactFinding
from trunkline_learning.milestones import Milestone
from trunkline_learning.store import ACTOR, scope_of
from trunkline_learning.turns import Provenance

log = logging.getLogger(__name__)

NEAR = 12
REWORDING_SIMILARITY = 0.75
"""From here on two facts that a model found in one turn, at two times, are one."""

SHOWN = 8
"""Known facts that a model receives together with a turn."""


class FactStore:
    """Stores facts as chunks of the memory of their block. Every method raises ToolError when memory fails."""

    def __init__(self, context: LifespanContext) -> None:
        self._context = context

    def _memory(self, source: Provenance) -> Memory:
        return self._context.memory(source.block, actor=ACTOR, scope=scope_of(source))

    async def find_similar(self, source: Provenance, text: str) -> tuple[Fact, ...]:
        """Kept facts of the person of ``source`` in that block that are near to a text, nearest first."""
        found = await self._memory(source).recall(text, limit=NEAR, min_confidence=0.0)
        facts = (fact_of(one.chunk, source.block) for one in found.chunks)
        return tuple(fact for fact in facts if fact is not None and fact.source.person == source.person)

    async def store(self, findings: Sequence[FactFinding]) -> None:
        """Keep what is not known yet, and link what contradicts.

        Doing it again for the same turn keeps nothing twice, however far it came before, and whatever other words a
        model finds the second time.
        """
        fresh = [one for one in findings if one.repeats is None]
        if not fresh:
            return
        source = fresh[0].fact.source
        earlier = await self._of_turn(source)
        mine = list(earlier)
        for one in fresh:
            known = await self.find_similar(source, one.fact.text)
            again = next(
                (fact for fact in (*mine, *known) if is_same_statement(one.fact.text, fact.text)), None
            )
            again = again or next((fact for fact in earlier if _is_rewording(one.fact, fact)), None)
            if again is not None and again not in mine:
                if not _is_superseded(again, known):
                    continue  # it was said before
                again = None  # it was, and then something else; now it holds again
            fact = again or await self._remember(one.fact)
            if fact is None:
                return  # the block's policy lets nothing be kept
            if again is None:
                mine.append(fact)
            others = (*one.against, *(other for other, _ in contradicted_facts(fact, (*known, *mine))))
            await self._contradict(fact, others)
        await self._remove_duplicates(source)

    async def store_milestone(self, milestone: Milestone) -> None:
        """Keep a note of a turn; one that is there already is not kept again."""
        source, tags = milestone.source, (MILESTONE, milestone.tag)
        chunks = await self._memory(source).chunks(tags=tags, conversation=source.conversation)
        if any(chunk.metadata.turn_id == source.turn for chunk in chunks):
            return
        person = {"person": source.person} if source.person else {}
        await self._store_chunk(milestone.text, source, tags, milestone.confidence, "note", person)

    async def _remove_duplicates(self, source: Provenance) -> None:
        """Of what two learners kept of one turn at the same moment, leave one: both choose the same, the first id."""
        left: list[Fact] = []
        for fact in sorted(await self._of_turn(source), key=lambda one: one.id):
            if any(is_same_statement(fact.text, other.text) for other in left):
                await self._forget(fact)
            else:
                left.append(fact)

    async def _of_turn(self, source: Provenance) -> tuple[Fact, ...]:
        """Return the facts that were already stored from a turn."""
        chunks = await self._memory(source).chunks(tags=(LEARNED,), conversation=source.conversation)
        facts = (fact_of(chunk, source.block) for chunk in chunks)
        return tuple(fact for fact in facts if fact is not None and fact.source.turn == source.turn)

    async def _remember(self, fact: Fact) -> Fact | None:
        tags = (LEARNED, f"said-by-{fact.role}")
        made = await self._store_chunk(
            fact.text, fact.source, tags, fact.confidence, fact.type, _fields(fact)
        )
        return msgspec.structs.replace(fact, id=made) if made else None

    async def _store_chunk(
        self,
        text: str,
        source: Provenance,
        tags: tuple[str, ...],
        confidence: float,
        type: str,
        fields: dict[str, str],
    ) -> str:
        """Store a chunk that all agents of the block may read; returns its id, "" when the block's policy refuses."""
        try:
            done = await self._memory(source).remember(
                text,
                tags=tags,
                confidence=confidence,
                chunk_type=type,
                layer="project_global",
                message=source.message,
                source=LEARNED,
                fields=dict(fields),
            )
        except ToolError as error:
            if error.kind != "permission_denied":
                raise
            log.info("facts of block %s are not stored: %s", source.block, error)
            return ""
        return done.chunk_ids[0] if done.chunk_ids else ""

    async def _contradict(self, fact: Fact, others: Iterable[Fact]) -> None:
        for id in dict.fromkeys(other.id for other in others):
            if id != fact.id:
                await self._link(fact, id)

    async def _link(self, fact: Fact, other: str) -> None:
        try:
            await self._memory(fact.source).link(fact.id, other, CONTRADICTS)
        except ToolError as error:
            if error.kind in (*TRANSIENT_KINDS, "internal"):
                raise
            # The other fact was forgotten in between, or lies where the learner may not write.
            log.info("%s contradicts %s and is not linked: %s", fact.id, other, error)

    async def _forget(self, fact: Fact) -> None:
        try:
            await self._memory(fact.source).forget(fact.id, reason=FORGET_REASON)
        except ToolError as error:
            if error.kind != "not_found":  # another learner forgot it
                raise


def _fields(fact: Fact) -> dict[str, str]:
    """Return the fields of a fact's chunk besides its text. The owner is not named in any field."""
    fields = {"role": fact.role, "said_at": fact.said_at.isoformat(), "found_by": fact.by}
    return {**fields, "person": fact.source.person} if fact.source.person else fields


def is_echo(fact: Fact, known: Iterable[str]) -> bool:
    """Report whether the agent only repeats a known fact that it was shown. That is not new evidence for it."""
    return fact.role == "assistant" and any(
        similarity(fact.text, one) >= REWORDING_SIMILARITY for one in known
    )


def _is_superseded(fact: Fact, known: Iterable[Fact]) -> bool:
    """Report whether something that contradicts a fact was said after it."""
    return any(other.said_at > fact.said_at for other, _ in contradicted_facts(fact, known))


def _is_rewording(new: Fact, earlier: Fact) -> bool:
    """Report whether a model, asked again about a turn, says what it said when it was asked before in other words."""
    models = new.by == earlier.by == "model"
    return (
        models
        and similarity(new.text, earlier.text) >= REWORDING_SIMILARITY
        and conflict_kind(new.text, earlier.text) is None
    )
