"""The owner's choices about learning: the table ``[learning]`` of ``preferences.toml``. Off unless it says ``on``."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import anyio
import msgspec

from trunkline import BlockConfig, HealthResult
from trunkline.api.files import SettingsFileError, read_settings
from trunkline.api.memory import BLOCK_FILE
from trunkline_learning.verdicts import Markers

log = logging.getLogger(__name__)

FILE = "preferences.toml"
NO_MODEL = "none"


class LearningPreferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner's preferences for learning: which parts are on, and what they may cost.

    ``model`` is ``adapter/model``; None the one that answers in the block; ``none`` asks no model at all, and words
    alone decide. ``max_cost_usd`` is for all questions about one turn. Each of the five parts can be switched off.
    ``max_tokens`` is how much of all that was learned a turn is given at most; 0 gives none of it. What is unknown here
    is a slip: nothing is learned and no model is asked, since it may have been to forbid that.
    """

    on: bool = False
    model: str | None = None
    max_cost_usd: Annotated[float, msgspec.Meta(ge=0.0)] = 0.02
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] = 800
    facts: bool = True
    episodes: bool = True
    playbook: bool = True
    profile: bool = True
    milestones: bool = True
    markers: Markers = Markers()

    @property
    def uses_model(self) -> bool:
        """Report whether a model is asked."""
        return self.model != NO_MODEL and self.max_cost_usd > 0


def is_remembered(block_file: str | None) -> bool:
    """Report whether a block's policy lets anything be remembered; one that cannot be read does not, nor does a block
    that is not there: it was archived or deleted meanwhile.
    """
    if block_file is None:
        return False
    try:
        return read_settings(BLOCK_FILE, block_file, BlockConfig).memory.enabled
    except SettingsFileError as error:
        log.warning("nothing is learned there: %s", error)
        return False


class _Preferences(msgspec.Struct, frozen=True):
    learning: LearningPreferences = LearningPreferences()


def parse_preferences(text: str | None) -> LearningPreferences:
    """The choices in the text of ``preferences.toml``; a text that cannot be read is a reported gap: nothing is
    learned."""
    choices, problem = parse_preferences_with_problem(text)
    if problem:
        log.warning("nothing is learned: %s", problem)
    return choices


def parse_preferences_with_problem(text: str | None, path: str = FILE) -> tuple[LearningPreferences, str]:
    """The same, and what is wrong with the text, with the line; "" when nothing is."""
    if text is None:
        return LearningPreferences(), ""
    try:
        return read_settings(path, text, _Preferences).learning, ""
    except SettingsFileError as error:
        return LearningPreferences(), str(error)


def preferences_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The health check that reports preferences that cannot be read, for this memory root."""

    async def check() -> HealthResult:
        file = anyio.Path(memory / FILE)
        if await file.exists() and not await file.is_file():
            return _warning(f"{file}: it is not a regular file.")
        try:
            text = await file.read_text(encoding="utf-8") if await file.exists() else None
        except (OSError, ValueError) as error:
            return _warning(f"{file}: {error}.")
        choices, problem = parse_preferences_with_problem(text, str(file))
        if problem:
            return _warning(problem)
        return HealthResult("ok", f"Learning is {'on' if choices.on else 'off'}, as {FILE} says")

    return check


def _warning(problem: str) -> HealthResult:
    return HealthResult(
        "warning",
        problem,
        "Correct it. Until then nothing is learned, and models receive nothing that was learned.",
    )
