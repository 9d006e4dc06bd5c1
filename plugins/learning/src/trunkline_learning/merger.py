"""Merges what a turn teaches into what memory holds, in one commit that holds the position too.

The commit insists that none of its files was changed since they were read. So a turn counts once, however many learners
there are and whenever one dies: what was not committed is merged again, what was committed is passed over.
"""

from collections.abc import Callable
from datetime import UTC, date
from typing import ParamSpec, TypeVar

import anyio
import msgspec

from trunkline._util.nlp.similarity import expanded
from trunkline.contracts.conversations.messages import now
from trunkline_learning import episodes, files, heuristic_reflector, metrics, playbook, profile
from trunkline_learning.episodes import Episode
from trunkline_learning.lessons import Taught
from trunkline_learning.metrics import Metrics
from trunkline_learning.model_folders import folder_of
from trunkline_learning.playbook import Changes, Mark, Operation, Playbook, Strategy
from trunkline_learning.playbook_reader import Book, Library
from trunkline_learning.preferences import Learning
from trunkline_learning.profile import Profile
from trunkline_learning.store import Draft, Shelf
from trunkline_learning.turn_reader import Turns
from trunkline_learning.turns import FinishedTurn

P = ParamSpec("P")
T = TypeVar("T")

REMEMBERED = 64
"""How many turns the position names. One is in work at a time, so what comes again is among the last few."""

MOST_PRUNED = 200


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns have been learned from: the last ones, newest last, and how many in all."""

    turns: tuple[str, ...] = ()
    count: int = 0


class Merger:
    """Merges one turn. Raises BusError kinds, and Overtaken when somebody wrote in between: then merge again."""

    def __init__(self, shelf: Shelf, library: Library, choices: Learning) -> None:
        self._shelf = shelf
        self._library = library
        self._choices = choices

    async def merge(self, turns: Turns, taught: Taught) -> bool:
        """Write what the turn teaches; False when that was done before."""
        draft = await self._shelf.draft(_paths(turns))
        position = draft.read(files.POSITION, Position) or Position()
        turn = turns.turn
        if turn.source.turn in position.turns:
            return False
        new = await self._strategies(draft, turns, taught) if self._choices.playbook else 0
        self._numbers(draft, turns, taught, new)
        if self._choices.episodes:
            self._judge(draft, turns, taught)
            await self._episode(draft, turn, taught)
        if self._choices.profile and not turn.source.person:
            _learn_person(draft, turn)
        done = (*position.turns, turn.source.turn)[-REMEMBERED:]
        draft.put(files.POSITION, Position(turns=done, count=position.count + 1))
        await self._shelf.commit(draft, turn.source, "Learn from a turn")
        return True

    async def _strategies(self, draft: Draft, turns: Turns, taught: Taught) -> int:
        """Put changed strategies into the draft; returns how many are new with the turn's model."""
        parts = [(turns.turn, taught.delta)]
        if turns.before is not None:
            parts.insert(0, (turns.before, taught.delta_before))
        new = 0
        for folder, book in (await self._library.books(*(turn for turn, _ in parts))).items():
            changes = await _in_thread(_changes, folder, book, parts)
            for id, one in changes.items():
                path, known = files.strategy_path(folder, id), book.hashes.get(id, "")
                if one is not None:
                    draft.put(path, one, expected=known)
                    new += known == ""
                elif known:
                    draft.drop(path, expected=known)
        return new

    def _numbers(self, draft: Draft, turns: Turns, taught: Taught, new: int) -> None:
        """A turn counts when it ends, and as good or bad once it is judged."""
        turn, before = turns.turn, turns.before
        kinds = heuristic_reflector.failure_kinds(turn)
        numbers = {folder_of(one.model): _metrics(draft, one) for one in (before or turn, turn)}
        mine = metrics.counted(numbers[folder_of(turn.model)], _day(turn), strategies=new, failures=kinds)
        numbers[folder_of(turn.model)] = metrics.judged(mine, _day(turn), taught.verdict)
        if before is not None and (change := taught.change):
            theirs = numbers[folder_of(before.model)]
            numbers[folder_of(before.model)] = metrics.judged(
                theirs, _day(before), change.now, instead_of=change.was
            )
        for folder, one in numbers.items():
            draft.put(files.metrics_path(folder), one)

    def _judge(self, draft: Draft, turns: Turns, taught: Taught) -> None:
        """The person's message decides about the episode before it."""
        if turns.before is None or taught.change is None:
            return
        path = _episode_path(turns.before)
        known = draft.read(path, Episode)
        if known is not None:
            said = msgspec.structs.replace(known, verdict=taught.change.now, judged_by="next message")
            draft.put(path, said)

    async def _episode(self, draft: Draft, turn: FinishedTurn, taught: Taught) -> None:
        """Remember the turn, unless there is nothing to it or its like is remembered; let go of what is old."""
        if not episodes.worth(turn):
            return
        episode, folder = episodes.episode_of(turn, taught.verdict), folder_of(turn.model)
        near = await self._shelf.episodes_near(folder, expanded(episode.task))
        if await _in_thread(episodes.duplicate, episode, near) is not None:
            return
        draft.put(_episode_path(turn), episode)
        for path in episodes.outdated(await self._shelf.episode_days(folder), now())[:MOST_PRUNED]:
            draft.drop(path)


def _paths(turns: Turns) -> list[str]:
    """The files that a merge is always based on."""
    both = [turns.turn] if turns.before is None else [turns.turn, turns.before]
    paths = {files.POSITION, files.PROFILE, *map(_episode_path, both)}
    return sorted(paths | {files.metrics_path(folder_of(one.model)) for one in both})


def _changes(folder: str, book: Book, parts: list[tuple[FinishedTurn, tuple[Operation, ...]]]) -> Changes:
    """What the deltas change in one model's playbook: of another model's turns only the marks count there."""
    strategies, changes = dict(book.strategies), Changes()
    for turn, delta in parts:
        mine = delta if folder == folder_of(turn.model) else [one for one in delta if isinstance(one, Mark)]
        changes |= (step := playbook.merged(strategies, mine, turn.source, turn.at))
        strategies = _after(strategies, step)
        changes |= (step := playbook.refined(strategies, turn.source, turn.at))
        strategies = _after(strategies, step)
    return changes


def _after(strategies: Playbook, changes: Changes) -> dict[str, Strategy]:
    return {id: one for id, one in {**strategies, **changes}.items() if one is not None}


def _learn_person(draft: Draft, turn: FinishedTurn) -> None:
    known = draft.read(files.PROFILE, Profile) or Profile(created_at=turn.at, last_updated=turn.at)
    learned = profile.updated(known, turn)
    if learned is not known:
        draft.put(files.PROFILE, learned)


def _metrics(draft: Draft, turn: FinishedTurn) -> Metrics:
    return draft.read(files.metrics_path(folder_of(turn.model)), Metrics) or Metrics()


def _episode_path(turn: FinishedTurn) -> str:
    return files.episode_path(turn, episodes.episode_id(turn.source.turn))


def _day(turn: FinishedTurn) -> date:
    return turn.at.astimezone(UTC).date()


async def _in_thread(job: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Comparing hundreds of texts takes milliseconds that the turns of this process must not wait."""
    return await anyio.to_thread.run_sync(lambda: job(*arguments, **named))
