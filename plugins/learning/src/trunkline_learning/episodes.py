"""Episodes: what was asked, which tools were used, what came of it. Pure; where they lie is ``store``."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from trunkline.api.bus import key_of
from trunkline.api.nlp import similarity
from trunkline_learning.model_folders import model_folder, model_weight
from trunkline_learning.text import cut, split_words
from trunkline_learning.turns import FinishedTurn, Provenance
from trunkline_learning.verdicts import Verdict

DUPLICATE = 0.95
RELEVANT = 0.7
REDUNDANT = 0.5
"""From here on an episode says what the conversation has just said."""

MAX_SHOWN = 5
MAX_STORED = 1000
MAX_AGE = timedelta(days=90)
SHORT_ANSWER = 300
"""Letters: a shorter answer without tools is no episode."""

SHORT_QUERY = 8
FOLLOW_UP = 0.4
"""A query of fewer words is taken together with the conversation's last task when it has that much to do with it."""

MAX_TOKENS = 400
LETTERS_PER_TOKEN = 4
SHOWN_TASK = 70


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """A finished task. ``verdict`` is success, failure, or unknown while nobody has judged it; ``judged_by`` is the
    source of the verdict: ``next message``, ``errors`` or ""."""

    id: str
    task: str
    tools: tuple[str, ...]
    outcome: str
    verdict: Verdict
    judged_by: str
    model: str
    source: Provenance
    created_at: datetime

    @property
    def text(self) -> str:
        """The episode in words, ``MAX_TOKENS`` at most."""
        tools = ", ".join(self.tools) or "none"
        whole = f"Task: {self.task}\nTools used: {tools}\nOutcome: {self.verdict}: {self.outcome}"
        return whole[: MAX_TOKENS * LETTERS_PER_TOKEN]


def episode_id(turn: str) -> str:
    """The id of a turn's episode: the same each time, so that learning a turn twice leaves one."""
    return f"ep-{key_of('episode', turn)[:16].lower()}"


def is_worth_remembering(turn: FinishedTurn) -> bool:
    """Report whether there is anything to remember: a tool was used, or the answer is not short."""
    return bool(turn.task.strip()) and (bool(turn.tools) or len(turn.answer) >= SHORT_ANSWER)


def episode_of(turn: FinishedTurn, verdict: Verdict) -> Episode:
    """The episode of a turn."""
    return Episode(
        id=episode_id(turn.source.turn),
        task=cut(turn.task, 600),
        tools=turn.tool_names[:20],
        outcome=cut(_outcome(turn), 600),
        verdict=verdict,
        judged_by="" if verdict == "unknown" else "errors",
        model=turn.model,
        source=turn.source,
        created_at=turn.at,
    )


def find_duplicate(new: Episode, others: Iterable[Episode]) -> Episode | None:
    """An episode that says the same already: the same tools and outcome for as good as the same task."""
    return next((other for other in others if _same(new, other)), None)


def select_episodes(
    query: str, episodes: Iterable[Episode], *, model: str, conversation: str, lately: Sequence[str] = ()
) -> tuple[tuple[float, Episode], ...]:
    """The episodes to show for a task with their similarity, nearest first: ``MAX_SHOWN`` at most, each ``RELEVANT``.

    None says nearly the same as one before it, none is of the conversation itself, and none is what the conversation
    said ``lately`` anyway.
    """
    near = [
        (similarity(query, one.task) * model_weight(model_folder(one.model), model), one)
        for one in episodes
        if one.source.conversation != conversation
    ]
    near.sort(key=lambda pair: (-pair[0], -pair[1].created_at.timestamp(), pair[1].id))
    picked: list[tuple[float, Episode]] = []
    for score, one in near:
        if len(picked) == MAX_SHOWN or score < RELEVANT:
            break
        known = any(similarity(one.outcome, said) >= REDUNDANT for said in lately)
        if not known and all(similarity(one.text, other.text) < DUPLICATE for _, other in picked):
            picked.append((score, one))
    return tuple(picked)


def render_episodes(picked: Sequence[tuple[float, Episode]]) -> str:
    """The numbered list that the model is given."""
    return "\n".join(
        f"{number}. {cut(one.task, SHOWN_TASK)} → {', '.join(one.tools) or 'no tools'} "
        f"({one.verdict}, similarity {score:.2f}): {cut(one.outcome, 200)}"
        for number, (score, one) in enumerate(picked, start=1)
    )


def lookup_query(query: str, before: str) -> str:
    """Return the search query for a message. A short follow-up question is searched together with the task before
    it."""
    if len(split_words(query)) < SHORT_QUERY and before and similarity(query, before) >= FOLLOW_UP:
        return f"{before}\n{query}"
    return query


def outdated_files(paths: Sequence[tuple[str, datetime]], now: datetime) -> tuple[str, ...]:
    """The files of episodes to drop: older than ``MAX_AGE``, and the oldest beyond ``MAX_STORED``."""
    newest = sorted(paths, key=lambda pair: (pair[1], pair[0]), reverse=True)
    old = [path for path, at in newest[:MAX_STORED] if now - at > MAX_AGE]
    return (*old, *(path for path, _ in newest[MAX_STORED:]))


def _same(new: Episode, other: Episode) -> bool:
    alike = other.id != new.id and other.tools == new.tools and other.verdict == new.verdict
    alike = alike and other.source.audience == new.source.audience
    return alike and similarity(new.task, other.task) >= DUPLICATE


def _outcome(turn: FinishedTurn) -> str:
    broken = [tool for tool in turn.tools if tool.failed]
    if turn.answer.strip():
        return turn.answer
    return f"{broken[-1].name} failed: {broken[-1].output}" if broken else f"ended: {turn.reason}"
