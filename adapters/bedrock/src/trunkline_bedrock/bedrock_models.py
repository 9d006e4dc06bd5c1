"""The features of Bedrock's models: forms of reasoning, cache points, tool choices, limits. No I/O."""

import re
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""The levels of effort, least first."""

BASIC_EFFORTS = ("low", "medium", "high")
WITHOUT_XHIGH = ("low", "medium", "high", "max")

CachePlace = Literal["tools", "system", "messages"]
EVERYWHERE: tuple[CachePlace, ...] = ("tools", "system", "messages")

REGIONS = re.compile(r"(?:us|eu|apac|ap|jp|au|ca|sa|me|af|il|us-gov|global)\.(?=[a-z0-9-]+\.)")
"""The prefix of a cross-region inference profile before the model's id."""


class ModelFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """The features of the models whose base ids match one of ``patterns``.

    ``thinking`` is the form in which reasoning is requested: ``adaptive`` and ``budget`` (Claude), ``nova`` (a level in
    ``reasoningConfig``), ``effort`` (``reasoning_effort``) or ``none``. ``off`` is the type of Claude's ``thinking``
    that switches it off: "" if the model always thinks, ``omit`` if it thinks only when the request says so.
    ``cache`` lists the places that take a cache point; with ``marks_text`` it follows a text in a message. ``prefill``
    says that the model continues a final assistant message, ``sampling`` that it takes a temperature, ``forces`` that a
    request may name the tool to call, ``status`` that a result has a status, ``mixes`` that calls and results share a
    message with text, ``simple_schemas`` that the schema of a tool may have only a type, properties and required ones,
    ``streams_tools`` that the model streams if there are tools, ``counts`` that the vendor counts its tokens.
    ``context_window`` and ``max_output`` are 0 if unknown.
    """

    patterns: tuple[str, ...]
    thinking: Literal["adaptive", "budget", "nova", "effort", "none"] = "none"
    off: Literal["omit", "disabled", "between_tools", ""] = "omit"
    efforts: tuple[str, ...] = EFFORTS
    cache: tuple[CachePlace, ...] = ()
    marks_text: bool = False
    simple_schemas: bool = False
    prefill: bool = False
    sampling: bool = True
    forces: bool = False
    status: bool = False
    mixes: bool = True
    streams_tools: bool = True
    counts: bool = False
    context_window: int = 0
    max_output: int = 0


def _nova(
    *patterns: str, thinking: Literal["nova", "none"] = "none", window: int, output: int
) -> ModelFeatures:
    """Return the features of Nova models."""
    return ModelFeatures(
        patterns=tuple(f"amazon.nova-{pattern}" for pattern in patterns),
        thinking=thinking, efforts=BASIC_EFFORTS, cache=("system", "messages"), marks_text=True,
        simple_schemas=True, forces=True, status=True, context_window=window, max_output=output,
    )  # fmt: skip


def _claude(
    *patterns: str,
    thinking: Literal["adaptive", "budget", "none"] = "adaptive",
    off: Literal["omit", "disabled", "between_tools", ""] = "disabled",
    efforts: tuple[str, ...] = EFFORTS,
    cached: bool = True,
    old: bool = False,
    window: int = 1_000_000,
    output: int = 128_000,
) -> ModelFeatures:
    """Return the features of Claude models. ``old`` models take a temperature and continue a final message."""
    return ModelFeatures(
        patterns=tuple(f"anthropic.claude-{pattern}" for pattern in patterns),
        thinking=thinking, off=off, efforts=efforts, cache=EVERYWHERE if cached else (), prefill=old, sampling=old,
        forces=True, status=True, counts=True, context_window=window, max_output=output,
    )  # fmt: skip


FEATURES: tuple[ModelFeatures, ...] = (
    _claude("mythos-preview*", off="", efforts=WITHOUT_XHIGH),
    _claude("fable-*", "mythos-*", "opus-5-5*", off=""),
    _claude("sonnet-5-5*", off="between_tools"),
    _claude("haiku-5-5*", "opus-5*", "sonnet-5*"),
    _claude("opus-4-[78]*", off="omit"),
    ModelFeatures(
        patterns=("anthropic.claude-opus-4-6*", "anthropic.claude-sonnet-4-6*"),
        thinking="adaptive", efforts=WITHOUT_XHIGH, cache=EVERYWHERE, forces=True, status=True, counts=True,
        context_window=1_000_000, max_output=128_000,
    ),
    _claude(
        "opus-4-1*", "opus-4-0*", "opus-4-2*",
        thinking="budget", off="omit", old=True, window=200_000, output=32_000,
    ),
    _claude(
        "*-4-5*", "sonnet-4-0*", "sonnet-4-2*", "3-7-*",
        thinking="budget", off="omit", old=True, window=200_000, output=64_000,
    ),
    _claude("3-5-haiku*", "3-5-sonnet-20241022*", thinking="none", old=True, window=200_000, output=8192),
    _claude("3-*", "v2*", "instant*", thinking="none", cached=False, old=True, window=200_000, output=4096),
    _claude("*", window=0, output=0),
    _nova("2-*", thinking="nova", window=1_000_000, output=64_000),
    _nova("micro*", window=128_000, output=10_000),
    _nova("lite*", "pro*", window=300_000, output=10_000),
    _nova("premier*", window=1_000_000, output=32_000),
    ModelFeatures(
        patterns=("openai.gpt-oss-*",), thinking="effort", efforts=BASIC_EFFORTS, context_window=128_000
    ),
    ModelFeatures(patterns=("meta.llama3*",), mixes=False, streams_tools=False, context_window=128_000),
    ModelFeatures(
        patterns=("meta.llama*", "mistral.mistral-*", "mistral.mixtral-*"), mixes=False, streams_tools=False
    ),
    ModelFeatures(patterns=("writer.palmyra-*", "deepseek.*"), streams_tools=False),
    ModelFeatures(patterns=("*",)),
)  # fmt: skip
"""The first row that matches counts. Within Claude and at the end, ``*`` is for models newer than this table."""


def base_model(model: str) -> str:
    """Return the id of the foundation model: without an ARN and without the regions of an inference profile. The id
    of an application inference profile or of provisioned throughput does not say its model, and stays as it is.
    """
    name = model.rpartition("/")[2] if model.startswith("arn:") else model
    return REGIONS.sub("", name, count=1) if REGIONS.match(name) else name


def features_of(model: str, behind: str = "") -> ModelFeatures:
    """Return the features of a model. ``behind`` is the foundation model of an id that does not say it."""
    name = base_model(model)
    if "." not in name and behind:
        name = base_model(behind)
    return next(row for row in FEATURES if any(fnmatchcase(name, pattern) for pattern in row.patterns))
