"""Merges what a turn teaches into what memory holds, in one commit that holds the position too.

The commit insists that none of its files was changed since they were read. So a turn counts once, however many learners
there are and whenever one dies: what was not committed is merged again, what was committed is passed over.
"""

from collections.abc import Callable
from datetime import UTC, date
from typing import ParamSpec, TypeVar

import anyio
import msgspec

from trunkline.api.memory import utc_now
from trunkline.api.nlp import expand_query
from trunkline_learning import episodes, files, heuristic_reflector, metrics, playbook, profile
from trunkline_learning.episodes import Episode
from trunkline_learning.lessons import TurnLessons
from trunkline_learning.metrics import ModelMetrics
from trunkline_learning.model_folders import model_folder
from trunkline_learning.playbook import Changes, MarkStrategy, Playbook, PlaybookOperation, Strategy
from trunkline_learning.playbook_reader import PlaybookReader, StoredPlaybook
from trunkline_learning.preferences import LearningPreferences
from trunkline_learning.profile import Profile
from trunkline_learning.store import Draft, LearningStore
from trunkline_learning.turn_reader import TurnPair
from trunkline_learning.turns import FinishedTurn

P = ParamSpec("P")
T = TypeVar("T")

REMEMBERED_TURNS = 64
"""Turns that the position lists. One turn is processed at a time, so a redelivered one is among the last few."""

MOST_PRUNED = 200


class LearningPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The turns that were learned from: the last ones, newest last, and the total number."""

    turns: tuple[str, ...] = ()
    count: int = 0


class Merger:
    """Merges one turn. Raises BusError kinds, and WriteConflict when somebody wrote in between: then merge again."""

    def __init__(self, store: LearningStore, library: PlaybookReader, choices: LearningPreferences) -> None:
        self._store = store
        self._library = library
        self._choices = choices

    async def merge(self, turns: TurnPair, taught: TurnLessons) -> bool:
        """Write what the turn teaches; False when that was done before."""
        draft = await self._store.draft(_paths(turns))
        position = draft.read(files.POSITION, LearningPosition) or LearningPosition()
        turn = turns.turn
        if turn.source.turn in position.turns:
            return False
        new = await self._merge_strategies(draft, turns, taught) if self._choices.playbook else 0
        self._merge_metrics(draft, turns, taught, new)
        if self._choices.episodes:
            self._update_previous_verdict(draft, turns, taught)
            await self._add_episode(draft, turn, taught)
        if self._choices.profile and not turn.source.person:
            _learn_person(draft, turn)
        done = (*position.turns, turn.source.turn)[-REMEMBERED_TURNS:]
        draft.put(files.POSITION, LearningPosition(turns=done, count=position.count + 1))
        await self._store.commit(draft, turn.source, "Learn from a turn")
        return True

    async def _merge_strategies(self, draft: Draft, turns: TurnPair, taught: TurnLessons) -> int:
        """Put changed strategies into the draft; returns how many are new with the turn's model."""
        parts = [(turns.turn, taught.delta)]
        if turns.before is not None:
            parts.insert(0, (turns.before, taught.delta_before))
        new = 0
        for folder, book in (await self._library.read_playbooks(*(turn for turn, _ in parts))).items():
            changes = await _in_thread(_changes, folder, book, parts)
            for id, one in changes.items():
                path, known = files.strategy_path(folder, id), book.hashes.get(id, "")
                if one is not None:
                    draft.put(path, one, expected=known)
                    new += known == ""
                elif known:
                    draft.drop(path, expected=known)
        return new

    def _merge_metrics(self, draft: Draft, turns: TurnPair, taught: TurnLessons, new: int) -> None:
        """A turn counts when it ends, and as good or bad once it is judged."""
        turn, before = turns.turn, turns.before
        kinds = heuristic_reflector.failure_kinds(turn)
        numbers = {model_folder(one.model): _metrics(draft, one) for one in (before or turn, turn)}
        mine = metrics.count_turn(
            numbers[model_folder(turn.model)], _day(turn), strategies=new, failures=kinds
        )
        numbers[model_folder(turn.model)] = metrics.count_verdict(mine, _day(turn), taught.verdict)
        if before is not None and (change := taught.change):
            theirs = numbers[model_folder(before.model)]
            numbers[model_folder(before.model)] = metrics.count_verdict(
                theirs, _day(before), change.now, instead_of=change.was
            )
        for folder, one in numbers.items():
            draft.put(files.metrics_path(folder), one)

    def _update_previous_verdict(self, draft: Draft, turns: TurnPair, taught: TurnLessons) -> None:
        """The person's message decides about the episode before it."""
        if turns.before is None or taught.change is None:
            return
        path = _episode_path(turns.before)
        known = draft.read(path, Episode)
        if known is not None:
            said = msgspec.structs.replace(known, verdict=taught.change.now, judged_by="next message")
            draft.put(path, said)

    async def _add_episode(self, draft: Draft, turn: FinishedTurn, taught: TurnLessons) -> None:
        """Remember the turn, unless there is nothing to it or its like is remembered; let go of what is old."""
        if not episodes.is_worth_remembering(turn):
            return
        episode, folder = episodes.episode_of(turn, taught.verdict), model_folder(turn.model)
        near = await self._store.episodes_near(folder, expand_query(episode.task))
        if await _in_thread(episodes.find_duplicate, episode, near) is not None:
            return
        draft.put(_episode_path(turn), episode)
        for path in episodes.outdated_files(await self._store.episode_days(folder), utc_now())[:MOST_PRUNED]:
            draft.drop(path)


def _paths(turns: TurnPair) -> list[str]:
    """The files that a merge is always based on."""
    both = [turns.turn] if turns.before is None else [turns.turn, turns.before]
    paths = {files.POSITION, files.PROFILE, *map(_episode_path, both)}
    return sorted(paths | {files.metrics_path(model_folder(one.model)) for one in both})


def _changes(
    folder: str, book: StoredPlaybook, parts: list[tuple[FinishedTurn, tuple[PlaybookOperation, ...]]]
) -> Changes:
    """Return the changes of one model's playbook. From turns of another model only the marks count."""
    strategies, changes = dict(book.strategies), Changes()
    for turn, delta in parts:
        mine = (
            delta
            if folder == model_folder(turn.model)
            else [one for one in delta if isinstance(one, MarkStrategy)]
        )
        changes |= (step := playbook.apply_delta(strategies, mine, turn.source, turn.at))
        strategies = _apply_changes(strategies, step)
        changes |= (step := playbook.refine(strategies, turn.source, turn.at))
        strategies = _apply_changes(strategies, step)
    return changes


def _apply_changes(strategies: Playbook, changes: Changes) -> dict[str, Strategy]:
    return {id: one for id, one in {**strategies, **changes}.items() if one is not None}


def _learn_person(draft: Draft, turn: FinishedTurn) -> None:
    known = draft.read(files.PROFILE, Profile) or Profile(created_at=turn.at, last_updated=turn.at)
    learned = profile.update_profile(known, turn)
    if learned is not known:
        draft.put(files.PROFILE, learned)


def _metrics(draft: Draft, turn: FinishedTurn) -> ModelMetrics:
    return draft.read(files.metrics_path(model_folder(turn.model)), ModelMetrics) or ModelMetrics()


def _episode_path(turn: FinishedTurn) -> str:
    return files.episode_path(turn, episodes.episode_id(turn.source.turn))


def _day(turn: FinishedTurn) -> date:
    return turn.at.astimezone(UTC).date()


async def _in_thread(job: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Comparing hundreds of texts takes milliseconds that the turns of this process must not wait."""
    return await anyio.to_thread.run_sync(lambda: job(*arguments, **named))
