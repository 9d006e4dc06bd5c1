"""The properties of Anthropic's models: forms of thinking, levels of effort, limits. No I/O."""

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""The levels of effort, least first."""

LARGEST_DEFAULT = 64_000
"""The largest limit of an answer that is sent without being asked for."""


class ModelTraits(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of the models whose names match one of ``patterns``.

    ``thinking`` is the form in which thinking is requested: ``adaptive`` (with a level of effort), ``budget`` (with a
    number of tokens) or ``none``. ``off`` is the type of ``thinking`` that switches it off: "" if the model always
    thinks, ``omit`` if it thinks only when the request says so. ``prefill`` says that the model continues a final
    assistant message, ``sampling`` that it takes a temperature. ``binding`` says that the API refuses blocks of
    thinking after a change of what precedes them. ``context_window`` is 0 if unknown.
    """

    patterns: tuple[str, ...]
    thinking: Literal["adaptive", "budget", "none"] = "adaptive"
    off: Literal["omit", "disabled", "between_tools", ""] = "disabled"
    efforts: tuple[str, ...] = EFFORTS
    prefill: bool = False
    sampling: bool = False
    binding: bool = False
    max_output: int = 128_000
    context_window: int = 1_000_000

    @property
    def default_max_tokens(self) -> int:
        """The limit of an answer whose request has none. The API requires one."""
        return min(self.max_output, LARGEST_DEFAULT)


WITHOUT_XHIGH = ("low", "medium", "high", "max")

TRAITS: tuple[ModelTraits, ...] = (
    ModelTraits(
        patterns=("claude-fable-5-[1-9]*", "claude-mythos-5-[1-9]*", "claude-opus-5-5*"), off="", binding=True
    ),
    ModelTraits(patterns=("claude-mythos-preview*",), off="", efforts=WITHOUT_XHIGH),
    ModelTraits(patterns=("claude-fable-*", "claude-mythos-*"), off=""),
    ModelTraits(patterns=("claude-sonnet-5-5*",), off="between_tools", binding=True),
    ModelTraits(patterns=("claude-haiku-5-5*",), binding=True),
    ModelTraits(patterns=("claude-opus-5*", "claude-sonnet-5*")),
    ModelTraits(patterns=("claude-opus-4-[78]*",), off="omit"),
    ModelTraits(
        patterns=("claude-opus-4-6*", "claude-sonnet-4-6*"), off="omit", efforts=WITHOUT_XHIGH, sampling=True
    ),
    ModelTraits(
        patterns=("claude-opus-4-1*", "claude-opus-4-0*", "claude-opus-4-2*"),
        thinking="budget", off="omit", prefill=True, sampling=True, max_output=32_000, context_window=200_000,
    ),
    ModelTraits(
        patterns=("claude-*-4-5*", "claude-sonnet-4-0*", "claude-sonnet-4-2*", "claude-3-7-*"),
        thinking="budget", off="omit", prefill=True, sampling=True, max_output=64_000, context_window=200_000,
    ),
    ModelTraits(
        patterns=("claude-3-*",),
        thinking="none", off="omit", prefill=True, sampling=True, max_output=4096, context_window=200_000,
    ),
    ModelTraits(patterns=("claude-*",), max_output=64_000, context_window=0),
    ModelTraits(
        patterns=("*",),
        thinking="budget", off="omit", prefill=True, sampling=True, max_output=8192, context_window=0,
    ),
)  # fmt: skip
"""The first row that matches counts. The last two are for models that are newer than this table and for those of other
vendors behind servers with Anthropic's protocol.
"""


def traits_of(model: str) -> ModelTraits:
    """Return what the model takes. Gateways put a prefix before the vendor's name, such as ``anthropic/``."""
    begin = model.find("claude-")
    name = model[begin:] if begin > 0 else model
    return next(row for row in TRAITS if any(fnmatchcase(name, pattern) for pattern in row.patterns))
