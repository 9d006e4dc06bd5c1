"""The context of every turn that comes from learning: profile, facts, strategies and episodes.

The profile stands with what stays the same from turn to turn; the rest is chosen for the message and stands just before
it, so a provider need not read the rest again. All of it together stays within the owner's ``max_tokens``. Nothing of
one person or block is told to another.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import anyio

from trunkline import ContextGap, ContextPart, MemoryFile, Message, ToolError, TurnInfo
from trunkline.api.memory import Chunk, utc_now
from trunkline.api.nlp import expand_query
from trunkline_learning import episodes, fact_selection, files, profile, strategy_selection
from trunkline_learning.episodes import Episode
from trunkline_learning.fact_chunks import LEARNED
from trunkline_learning.model_folders import model_folder
from trunkline_learning.playbook import Strategy
from trunkline_learning.preferences import LearningPreferences
from trunkline_learning.profile import Profile
from trunkline_learning.text import estimate_tokens
from trunkline_learning.turns import Audience, person_behind

log = logging.getLogger(__name__)

T = TypeVar("T")

RECENT_MESSAGES = 6
"""Messages back for which an episode is not repeated, because the conversation still holds what it would say."""

LOOKUP_TIMEOUT = 0.5
"""Seconds that a lookup may take. A turn starts without the result of a longer one."""

MAX_FILES_READ = 16
"""The largest number of files that are read for a question. Reading is the main cost of a lookup."""

FACTS = 16
"""The number of facts that are examined. Some may belong to another person or have been contradicted later."""

MIN_OWN_RESULTS = 6
"""With fewer finds of the model's own, those of other models are looked at too."""

REST = "The owner reads all of it with `trunkline learning`."


@dataclass(slots=True)
class LookupResult:
    """The lookups that memory answered in time. ``late`` names the parts that are incomplete, and why."""

    facts: tuple[Sequence[Chunk], Sequence[Chunk]] = ((), ())
    files: dict[str, Strategy | Episode] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextSection(Generic[T]):
    """A section of the learned context: its items, the most important first, and the function that renders them."""

    name: str
    items: Sequence[T]
    rendered: Callable[[Sequence[T]], str]
    priority: int
    changing: bool = True

    def within(self, tokens: int) -> str:
        """As many of the first items as fit."""
        for count in range(len(self.items), 0, -1):
            text = self.rendered(self.items[:count])
            if estimate_tokens(text) <= tokens:
                return text
        return ""


async def learned_context(
    turn: TurnInfo, choices: LearningPreferences, profile_file: MemoryFile | None
) -> Sequence[ContextPart | ContextGap]:
    """Return the parts that fit a turn; fewer when memory does not answer in time, and a note of what is missing."""
    place = turn.request.block, person_behind(turn.request.actor)
    task = episodes.lookup_query(turn.request.message.content, _asked_before(turn.history))
    found = await _look_up(turn, choices, task)
    parts = _parts(_sections(turn, choices, place, task, found, profile_file), choices.max_tokens)
    return (*parts, *(ContextGap(f"learned {name}", why) for name, why in found.late.items()))


async def _look_up(turn: TurnInfo, choices: LearningPreferences, task: str) -> LookupResult:
    """Facts, strategies and episodes that may fit the task, each as far as it came in time."""
    found = LookupResult()
    if not task.strip():
        return found

    async def facts() -> None:
        found.facts = await _facts(turn, task)

    async def near() -> None:
        found.files = await _find_strategies_and_episodes(turn, expand_query(task))

    with anyio.move_on_after(LOOKUP_TIMEOUT):
        async with anyio.create_task_group() as tasks:
            if choices.facts:
                tasks.start_soon(_try_lookup, "facts", facts, found)
            if choices.playbook or choices.episodes:
                tasks.start_soon(_try_lookup, "playbook and earlier tasks", near, found)
    for name, why in found.late.items():
        log.info("turn %s begins without learned %s: %s", turn.request.turn, name, why)
    return found


async def _try_lookup(name: str, lookup: Callable[[], Awaitable[None]], result: LookupResult) -> None:
    """Look something up; that it is late holds until it is there."""
    result.late[name] = f"memory took more than {LOOKUP_TIMEOUT:g} s"
    try:
        await lookup()
    except* ToolError as errors:
        log.info("learned %s could not be looked up: %s", name, errors.exceptions[0])
        result.late[name] = "memory could not look them up"
    else:
        del result.late[name]


def _sections(
    turn: TurnInfo,
    choices: LearningPreferences,
    place: Audience,
    task: str,
    result: LookupResult,
    profile_file: MemoryFile | None,
) -> list[ContextSection[Any]]:
    """Return the sections for the turn, the most important first."""
    person = _profile(profile_file, choices, place)
    selected = fact_selection.select_facts(*result.facts, place)
    strategies = _strategies(turn, place, task, result) if choices.playbook else ()
    past = _episodes(turn, place, task, result) if choices.episodes else ()
    return [
        ContextSection("facts", selected, fact_selection.render_facts, priority=35),
        ContextSection("profile", person, "".join, priority=40, changing=False),
        ContextSection("playbook", strategies, strategy_selection.render_strategies, priority=30),
        ContextSection("earlier tasks", past, episodes.render_episodes, priority=25),
    ]


def _parts(sections: Iterable[ContextSection[Any]], tokens: int) -> Iterator[ContextPart]:
    """The sections within so many tokens: the first ones whole, of the others as many items as there is room for."""
    for section in sections:
        text = section.within(tokens)
        if text:
            tokens -= estimate_tokens(text)
            share = 0.1 if section.changing else 0.05
            yield ContextPart(
                section.name,
                text,
                priority=section.priority,
                share=share,
                rest=REST,
                changing=section.changing,
            )


def _profile(file: MemoryFile | None, choices: LearningPreferences, place: Audience) -> tuple[str, ...]:
    """The owner's profile, for the owner alone; empty when there is nothing to say yet."""
    if file is None or place[1] or not choices.profile:
        return ()
    owner = files.decode(file.content, Profile)
    text = profile.describe_profile(owner) if owner is not None else ""
    return (text,) if text else ()


def _strategies(turn: TurnInfo, place: Audience, task: str, result: LookupResult) -> Sequence[Strategy]:
    learned = [
        (files.model_folder_in(path), one)
        for path, one in result.files.items()
        if isinstance(one, Strategy) and one.is_for(place)
    ]
    return strategy_selection.select_strategies(task, learned, model=turn.model, now=utc_now())


def _episodes(
    turn: TurnInfo, place: Audience, task: str, result: LookupResult
) -> Sequence[tuple[float, Episode]]:
    return episodes.select_episodes(
        task,
        [one for one in result.files.values() if isinstance(one, Episode) and one.source.audience == place],
        model=turn.model,
        conversation=turn.request.conversation,
        lately=[
            message.content for message in turn.history[-RECENT_MESSAGES:] if message.role == "assistant"
        ],
    )


async def _facts(turn: TurnInfo, query: str) -> tuple[Sequence[Chunk], Sequence[Chunk]]:
    """The facts of the block that were found for a query, and the newest ones."""
    found: list[Sequence[Chunk]] = [(), ()]

    async def recall() -> None:
        answer = await turn.memory.recall(query, limit=FACTS, min_confidence=0.0, tags=(LEARNED,))
        found[0] = [one.chunk for one in answer.chunks]

    async def latest() -> None:
        found[1] = await turn.memory.chunks(tags=(LEARNED,), limit=FACTS)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recall)
        tasks.start_soon(latest)
    return found[0], found[1]


async def _find_strategies_and_episodes(turn: TurnInfo, query: str) -> dict[str, Strategy | Episode]:
    """Strategies and episodes with words of the query: the answering model's own, and if these are few, all models'."""
    own = model_folder(turn.model)
    paths = await _search_files(turn, query, (files.playbook_folder(own), files.episodes_folder(own)))
    if len(paths) < MIN_OWN_RESULTS:
        paths += [path for path in await _search_files(turn, query, (files.MODELS,)) if path not in paths]
    return await _read(turn, paths)


async def _search_files(turn: TurnInfo, query: str, places: Sequence[str]) -> list[str]:
    """The files of strategies and episodes in these folders that the index finds, those of each folder in turn."""
    found: list[Sequence[str]] = [()] * len(places)

    async def look(number: int) -> None:
        path, limit = f"/{places[number]}", MAX_FILES_READ // len(places)
        answer = await turn.memory.search(query, path=path, limit=limit, kinds=("file",))  # episodes too
        found[number] = [hit.path for hit in answer.hits]

    async with anyio.create_task_group() as tasks:
        for number in range(len(places)):
            tasks.start_soon(look, number)
    paths = dict.fromkeys(path for some in found for path in some)
    return [path for path in paths if files.is_strategy(path) or files.is_episode(path)]


async def _read(turn: TurnInfo, paths: Iterable[str]) -> dict[str, Strategy | Episode]:
    found: dict[str, Strategy | Episode] = {}

    async def read(path: str) -> None:
        try:
            text = (await turn.memory.read(path)).content
        except ToolError as error:
            log.debug("%s is skipped: %s", path, error)  # it was taken out a moment ago
            return
        one = files.decode(text, Strategy) if files.is_strategy(path) else files.decode(text, Episode)
        if one is not None:
            found[path] = one

    async with anyio.create_task_group() as tasks:
        for path in list(paths)[:MAX_FILES_READ]:
            tasks.start_soon(read, path)
    return found


def _asked_before(history: Sequence[Message]) -> str:
    """The last thing that the person said before."""
    return next((message.content for message in reversed(history) if message.role == "user"), "")
