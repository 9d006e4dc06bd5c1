"""The owner's choices about routing: the table ``[router]`` of ``preferences.toml``. Off unless it says ``on``."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import anyio
import msgspec

from trunkline import HealthResult
from trunkline.api.files import SettingsFileError, read_settings
from trunkline_router.category import DESCRIPTIONS, MAX_STEPS, Category, default_tools

log = logging.getLogger(__name__)

FILE = "preferences.toml"

Orchestration = Literal["off", "on", "ask"]
"""Whether turns of the category ``full`` are split into steps. With ``ask`` a person approves the steps before they
run."""


class CategoryPreferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner's choices for one category.

    ``description`` tells the classifier what belongs to it. ``tools`` are names of tools, in which ``*`` matches any
    text; they replace the default ones. ``model`` is ``adapter/model``.
    """

    description: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None


class BlockRouting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choices for one block. What is None is as for all blocks."""

    on: bool | None = None
    orchestrator: Orchestration | None = None


class RouterPreferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner's choices.

    ``model`` classifies (``adapter/model``); None for the model of the purpose ``route``. ``timeout`` is the number of
    seconds for one question to it. ``orchestrator`` has an effect only where routing is ``on``, and ``max_steps`` is
    the largest number of steps of a task. ``blocks`` are the choices for single blocks.
    """

    on: bool = False
    orchestrator: Orchestration = "off"
    max_steps: Annotated[int, msgspec.Meta(ge=2, le=16)] = MAX_STEPS
    model: str | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=600)] = 15.0
    categories: dict[Category, CategoryPreferences] = {}
    blocks: dict[str, BlockRouting] = {}

    def in_block(self, block: str) -> "RouterPreferences":
        """Return the choices that hold in a block."""
        own = self.blocks.get(block, BlockRouting())
        return msgspec.structs.replace(
            self,
            on=self.on if own.on is None else own.on,
            orchestrator=own.orchestrator or self.orchestrator,
        )

    def tools(self, category: Category) -> tuple[str, ...] | None:
        """Return the tools that a turn of the category begins with; None for those of a turn without a router."""
        chosen = self._chosen(category).tools
        return default_tools(category) if chosen is None else chosen

    def category_model(self, category: Category) -> str | None:
        """Return the model of a category (``adapter/model``), None for the preferred one."""
        return self._chosen(category).model

    def descriptions(self) -> Mapping[Category, str]:
        """Return what belongs to each category."""
        return {one: self._chosen(one).description or text for one, text in DESCRIPTIONS.items()}

    def _chosen(self, category: Category) -> CategoryPreferences:
        return self.categories.get(category, CategoryPreferences())


class _PreferencesFile(msgspec.Struct, frozen=True):
    router: RouterPreferences = RouterPreferences()


def parse_preferences(text: str | None) -> RouterPreferences:
    """Return the choices in the text of ``preferences.toml``. If the text cannot be read, routing is off, and the log
    says why."""
    choices, problem = parse_with_problem(text)
    if problem:
        log.warning("routing is off: %s", problem)
    return choices


def parse_with_problem(text: str | None, path: str = FILE) -> tuple[RouterPreferences, str]:
    """Return the choices, and what is wrong with the text with its line; "" if nothing is."""
    if text is None:
        return RouterPreferences(), ""
    try:
        return read_settings(path, text, _PreferencesFile).router, ""
    except SettingsFileError as error:
        return RouterPreferences(), str(error)


def preferences_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """Return the health check that reports choices which cannot be read, for this memory root."""

    async def check() -> HealthResult:
        file = anyio.Path(memory / FILE)
        if await file.exists() and not await file.is_file():  # a pipe would wait for a writer
            return _unreadable(f"{file}: it is not a regular file.")
        try:
            text = await file.read_text(encoding="utf-8") if await file.exists() else None
        except (OSError, ValueError) as error:
            return _unreadable(f"{file}: {error}.")
        choices, problem = parse_with_problem(text, str(file))
        if problem:
            return _unreadable(problem)
        routed = (
            ["all blocks"] if choices.on else sorted(name for name, one in choices.blocks.items() if one.on)
        )
        return HealthResult(
            "ok", f"Routing is on in {', '.join(routed)}" if routed else f"Routing is off ({FILE})"
        )

    return check


def _unreadable(problem: str) -> HealthResult:
    return HealthResult("warning", problem, "Correct it. Until then no turn is routed.")
