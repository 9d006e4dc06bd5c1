"""The properties of Gemini models: forms of thinking, checks of signatures. No I/O."""

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
"""The levels of effort, least first."""

BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 32_768}
"""The tokens that each level of effort allows, for models that take a number of tokens."""


class GeminiTraits(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of the models whose names match one of ``patterns``.

    ``thinking`` is the form in which thinking is requested: ``level`` (one of ``levels``), ``budget`` (a number of
    tokens from ``least`` to ``most``) or ``none``. ``can_stop`` says that a budget of 0 switches thinking off.
    ``signed`` says that the API refuses a function call of the running turn without the signature that came with it.
    ``json_with_tools`` says that an answer in JSON can be requested together with tools.
    """

    patterns: tuple[str, ...]
    thinking: Literal["level", "budget", "none"] = "level"
    levels: tuple[str, ...] = ("low", "medium", "high")
    least: int = 0
    most: int = 24_576
    can_stop: bool = False
    signed: bool = True
    json_with_tools: bool = True

    def level(self, effort: str) -> str:
        """Return the level for an effort: the highest one that does not exceed it, else the least one."""
        wanted = EFFORTS.index(effort) if effort in EFFORTS else 0
        return next((one for one in reversed(EFFORTS[: wanted + 1]) if one in self.levels), self.levels[0])

    def budget(self, effort: str) -> int:
        """Return the number of tokens for an effort."""
        if effort == "none" and self.can_stop:
            return 0
        return min(max(BUDGETS.get(effort, 0), self.least), self.most)


ALL_LEVELS = ("minimal", "low", "medium", "high")

TRAITS: tuple[GeminiTraits, ...] = (
    GeminiTraits(
        patterns=("gemini-2.5-pro*",),
        thinking="budget", least=128, most=32_768, signed=False, json_with_tools=False,
    ),
    GeminiTraits(
        patterns=("gemini-2.5-flash-lite*",),
        thinking="budget", least=512, can_stop=True, signed=False, json_with_tools=False,
    ),
    GeminiTraits(
        patterns=("gemini-2.5-flash-image*",), thinking="none", signed=False, json_with_tools=False
    ),
    GeminiTraits(
        patterns=("gemini-2.5-*",), thinking="budget", can_stop=True, signed=False, json_with_tools=False
    ),
    GeminiTraits(
        patterns=("gemini-1.*", "gemini-2.*", "gemma-*", "learnlm-*"),
        thinking="none", signed=False, json_with_tools=False,
    ),
    GeminiTraits(patterns=("gemini-3-pro-image*", "gemini-3*-image*"), thinking="none"),
    GeminiTraits(patterns=("gemini-3-pro*",), levels=("low", "high")),
    GeminiTraits(
        patterns=("gemini-3*-flash-lite*", "gemini-3-flash*", "gemini-3.[1-6]-flash*"), levels=ALL_LEVELS
    ),
    GeminiTraits(patterns=("*",)),
)  # fmt: skip
"""The first row that matches counts. The last one is for all later models."""


def traits_of(model: str) -> GeminiTraits:
    """Return the properties of a model."""
    name = model.rpartition("/")[2]
    return next(row for row in TRAITS if any(fnmatchcase(name, pattern) for pattern in row.patterns))
