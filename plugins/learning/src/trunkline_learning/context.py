"""What a model is told of what was learned: profile, strategies and episodes that fit the task, on every turn (MN-D5).

The profile stands with what stays the same from turn to turn; strategies and episodes are chosen for the task and stand
just before the person's message, so a provider need not read the rest again. Nothing is told unless learning is on.
"""

import logging
from collections.abc import Iterable, Sequence

import anyio

from trunkline import ContextPart, TurnInfo
from trunkline.errors import ToolError
from trunkline.messages.conversation import Message, now
from trunkline.words.likeness import expanded
from trunkline_learning import choosing, episodes, files, preferences, profile
from trunkline_learning.episodes import Episode
from trunkline_learning.models import folder_of
from trunkline_learning.playbook import Strategy
from trunkline_learning.preferences import Learning, learning_in
from trunkline_learning.profile import Profile

log = logging.getLogger(__name__)

LATELY = 6
"""How many messages back the conversation still has before it what an episode would say."""

SECONDS = 0.5
"""What looking may take; a turn goes on without what took longer."""

LOOKED_AT = 16
"""How many files are read for a question at most: reading is what a lookup costs."""

FEW = 6
"""With fewer finds of the model's own, those of other models are looked at too (C25)."""

PREFERENCES, PROFILE = f"/{preferences.FILE}", f"/{files.PROFILE}"

REST = "The owner reads all of it with `trunkline learning`."


class Learned:
    """The context source."""

    name = "learning"
    files = (PREFERENCES, PROFILE)

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart]:
        """The parts that fit this turn; fewer when memory does not answer in time."""
        given = turn.files.get(PREFERENCES)
        choices = learning_in(given.content if given is not None else None)
        if not choices.on:
            return ()
        parts = [part for part in (_profile(turn, choices),) if part is not None]
        with anyio.move_on_after(SECONDS) as deadline:
            parts += await _for_the_task(turn, choices)
        if deadline.cancelled_caught:
            log.info("what was learned for turn %s was not found in time", turn.request.turn)
        return parts


def _profile(turn: TurnInfo, choices: Learning) -> ContextPart | None:
    file = turn.files.get(PROFILE)
    known = files.read(file.content, Profile) if file is not None and choices.profile else None
    text = profile.described(known) if known is not None else ""
    return ContextPart("profile", text, priority=40, share=0.05) if text else None


async def _for_the_task(turn: TurnInfo, choices: Learning) -> list[ContextPart]:
    task = episodes.asked_of(turn.request.message.content, _asked_before(turn.history))
    if not (choices.playbook or choices.episodes) or not task.strip():
        return []
    found = await _near(turn, expanded(task))
    strategies = [(files.folder_in(path), one) for path, one in found.items() if isinstance(one, Strategy)]
    past = [
        one for one in found.values() if isinstance(one, Episode) and one.source.block == turn.request.block
    ]
    chosen = choosing.chosen(task, strategies, model=turn.model, now=now()) if choices.playbook else ()
    picked = (
        episodes.scored(
            task,
            past,
            model=turn.model,
            conversation=turn.request.conversation,
            lately=[message.content for message in turn.history[-LATELY:] if message.role == "assistant"],
        )
        if choices.episodes
        else ()
    )
    return [
        ContextPart(name, text, priority=priority, share=0.1, rest=REST, changing=True)
        for name, text, priority in (
            ("playbook", choosing.rendered(chosen), 30),
            ("earlier tasks", episodes.rendered(picked), 25),
        )
        if text
    ]


async def _near(turn: TurnInfo, query: str) -> dict[str, Strategy | Episode]:
    """Strategies and episodes with words of the query: the answering model's own, and if these are few, all models'."""
    own = folder_of(turn.model)
    paths = await _found(turn, query, (files.playbook_folder(own), files.episodes_folder(own)))
    if len(paths) < FEW:
        paths += [path for path in await _found(turn, query, (files.MODELS,)) if path not in paths]
    return await _read(turn, paths)


async def _found(turn: TurnInfo, query: str, places: Sequence[str]) -> list[str]:
    """The files of strategies and episodes in these folders that the index finds, those of each folder in turn."""
    found: list[Sequence[str]] = [()] * len(places)

    async def look(number: int) -> None:
        answer = await turn.memory.search(query, path=f"/{places[number]}", limit=LOOKED_AT // len(places))
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
            log.debug("%s is passed over: %s", path, error)  # it was taken out a moment ago
            return
        one = files.read(text, Strategy) if files.is_strategy(path) else files.read(text, Episode)
        if one is not None:
            found[path] = one

    async with anyio.create_task_group() as tasks:
        for path in list(paths)[:LOOKED_AT]:
            tasks.start_soon(read, path)
    return found


def _asked_before(history: Sequence[Message]) -> str:
    """The last thing that the person said before."""
    return next((message.content for message in reversed(history) if message.role == "user"), "")
