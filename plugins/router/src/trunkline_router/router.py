"""The turn router: decides the category of a new turn, and with it the tools and the model."""

import logging

from trunkline import Completer, TurnInfo
from trunkline.api.turn import TurnRoute
from trunkline_router.category import Category
from trunkline_router.classifier import ModelFailed, classify
from trunkline_router.preferences import FILE, RouterPreferences, parse_preferences
from trunkline_router.prompts import FILES
from trunkline_router.signals import is_trivial, obvious_category, signals
from trunkline_router.subtask import category_of_task

log = logging.getLogger(__name__)

PREFERENCES = f"/{FILE}"


class CategoryRouter:
    """Routes the turns of the blocks in which the owner switched it on."""

    name = "router"
    files = (PREFERENCES, *FILES.values())

    async def __call__(self, turn: TurnInfo, completer: Completer) -> TurnRoute | None:
        """Return the route of a turn; None where routing is off. A classifier that fails makes it ``full``.

        The task of an agent has the tools of its type, so that only a step of a split task is routed.
        """
        file = turn.files.get(PREFERENCES)
        choices = parse_preferences(file.content if file is not None else None).in_block(turn.request.block)
        is_step = category_of_task(turn.request.message.content) is not None
        if not choices.on or (turn.request.parent and not is_step):
            return None
        category, reason = await self._decide(turn, choices, completer)
        return TurnRoute(
            category=category,
            reason=reason,
            tools=choices.tools(category),
            model=choices.category_model(category),
            mode=_mode(turn, category, choices),
        )

    async def _decide(
        self, turn: TurnInfo, choices: RouterPreferences, completer: Completer
    ) -> tuple[Category, str]:
        """Return the category and why it was chosen. Only a message without a conversation is decided by its signals:
        with one, "fix it" may mean anything."""
        message = turn.request.message
        if message.role != "user":
            return "full", "the turn continues with results of the client's tools"
        if (category := category_of_task(message.content)) is not None:
            return category, "it is a step of a split task"
        found = signals(message.content, has_files=bool(message.images or message.documents))
        if not turn.history and (category := obvious_category(found)) is not None:
            return category, f"the message has: {', '.join(sorted(found))}"
        if not message.content.strip():
            return "full", "the message is empty"
        try:
            answer = await classify(message.content, turn.history, choices, turn.files, completer)
        except ModelFailed as failure:
            log.warning("turn %s is not classified: %s", turn.request.turn, failure)
            return "full", f"no model answered: {failure}"
        return (answer, "a model chose it") if answer else ("full", "the model named no category")


def _mode(turn: TurnInfo, category: Category, choices: RouterPreferences) -> str:
    """Return the word by which the orchestrator knows its turns, "" for a turn that is not split (MN-F6)."""
    text = turn.request.message.content
    is_step = category_of_task(text) is not None
    if (
        category != "full"
        or is_step
        or turn.request.message.role != "user"
        or is_trivial(text, signals(text))
    ):
        return ""
    return "" if choices.orchestrator == "off" else choices.orchestrator
