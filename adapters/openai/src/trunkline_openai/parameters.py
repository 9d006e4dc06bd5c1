"""The parameters of models: the table of each vendor and protocol, and the fields of a request that they become."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from trunkline.api.model import ModelParameter
from trunkline_openai.vendors import OPENAI, REASONING_MODELS, Protocol, Vendor

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

SAMPLING_MODELS = ("gpt-3.5*", "gpt-4*", "chatgpt-*", "gpt-5-chat*", "gpt-5.*", "gpt-[6-9]*", "ft:*")
"""Patterns of OpenAI's models that take parameters of sampling. From gpt-5.1 on, only with the effort ``none``."""

VERBOSITY_MODELS = ("gpt-5*", "gpt-[6-9]*")

PARAMETERS = (
    ModelParameter(
        name="reasoning_effort",
        type="string",
        choices=EFFORTS,
        models=REASONING_MODELS,
        doc="How much the model reasons before it answers. Each model takes some of these levels.",
    ),
    ModelParameter(
        name="reasoning_summary",
        type="string",
        choices=("auto", "concise", "detailed"),
        models=REASONING_MODELS,
        doc="Whether a summary of the reasoning is shown, and how long it is.",
    ),
    ModelParameter(
        name="verbosity",
        type="string",
        choices=("low", "medium", "high"),
        models=VERBOSITY_MODELS,
        doc="How long the answers are.",
    ),
    ModelParameter(
        name="top_p",
        type="number",
        minimum=0,
        maximum=1,
        models=SAMPLING_MODELS,
        doc="The share of probability of the tokens that are considered, from 0 to 1.",
    ),
    ModelParameter(name="top_k", type="integer", doc="The number of tokens that are considered."),
    ModelParameter(
        name="min_p",
        type="number",
        minimum=0,
        maximum=1,
        doc="The smallest probability of a token, relative to the most probable one.",
    ),
    ModelParameter(
        name="repetition_penalty",
        type="number",
        minimum=0,
        doc="The penalty of tokens that were used before; 1 is none.",
    ),
    ModelParameter(
        name="seed",
        type="integer",
        models=SAMPLING_MODELS,
        doc="A number with which equal requests have equal answers, as far as the vendor can.",
    ),
    ModelParameter(
        name="stop",
        type="array",
        models=SAMPLING_MODELS,
        doc="Texts at which the answer ends, as a list of up to four strings.",
    ),
    ModelParameter(
        name="frequency_penalty",
        type="number",
        minimum=-2,
        maximum=2,
        models=SAMPLING_MODELS,
        doc="The penalty of tokens by their frequency so far, from -2 to 2.",
    ),
    ModelParameter(
        name="presence_penalty",
        type="number",
        minimum=-2,
        maximum=2,
        models=SAMPLING_MODELS,
        doc="The penalty of tokens that occurred before, from -2 to 2.",
    ),
    ModelParameter(
        name="logit_bias",
        type="object",
        models=SAMPLING_MODELS,
        doc="Changes of the probability of tokens, by their number: a value from -100 to 100.",
    ),
    ModelParameter(
        name="parallel_tool_calls",
        type="boolean",
        doc="Whether an answer may have several tool calls.",
    ),
    ModelParameter(
        name="max_tool_calls",
        type="integer",
        minimum=1,
        doc="The largest number of calls of hosted tools in an answer.",
    ),
    ModelParameter(
        name="service_tier",
        type="string",
        doc="The processing tier, such as auto, default, flex or priority. It changes the price.",
    ),
    ModelParameter(
        name="prompt_cache_key",
        type="string",
        doc="A name under which requests with the same beginning share the prompt cache.",
    ),
    ModelParameter(
        name="prompt_cache_retention",
        type="string",
        choices=("in_memory", "24h"),
        doc="How long the prompt cache keeps the beginnings of requests.",
    ),
    ModelParameter(
        name="truncation",
        type="string",
        choices=("auto", "disabled"),
        doc="Whether the vendor shortens requests that exceed the context window, instead of refusing them.",
    ),
    ModelParameter(
        name="metadata",
        type="object",
        doc="Up to 16 names with texts that the vendor attaches to the request.",
    ),
    ModelParameter(
        name="safety_identifier",
        type="string",
        doc="An opaque identifier of the end user, for the vendor's detection of abuse.",
    ),
    ModelParameter(
        name="user",
        type="string",
        doc="An opaque identifier of the end user. OpenAI replaces it by safety_identifier and prompt_cache_key.",
    ),
)
"""The parameters of all vendors. ``models`` are OpenAI's."""

BOTH = (
    "reasoning_effort",
    "verbosity",
    "top_p",
    "parallel_tool_calls",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "metadata",
    "safety_identifier",
    "user",
)
OPENAI_NAMES: Mapping[Protocol, tuple[str, ...]] = {
    "chat": (*BOTH, "seed", "stop", "frequency_penalty", "presence_penalty", "logit_bias"),
    "responses": (*BOTH, "reasoning_summary", "max_tool_calls", "truncation"),
}
"""The names of OpenAI's parameters. Responses has no seed, no stop and no penalties."""


def parameter_table(vendor: Vendor, protocol: Protocol) -> tuple[ModelParameter, ...]:
    """Return the parameters that the vendor's models take through a protocol."""
    if vendor is OPENAI:
        return tuple(one for one in PARAMETERS if one.name in OPENAI_NAMES[protocol])
    names = set(vendor.parameters)
    if protocol == "responses":
        names = names & set(OPENAI_NAMES["responses"]) | {"reasoning_summary"}
    return tuple(msgspec.structs.replace(one, models=("*",)) for one in PARAMETERS if one.name in names)


def chat_fields(parameters: Mapping[str, Any], vendor: Vendor) -> dict[str, Any]:
    """Return the fields of a request to Chat Completions for these parameters."""
    fields = {
        vendor.seed if name == "seed" else name: value
        for name, value in parameters.items()
        if name != "reasoning_effort"
    }
    if effort := parameters.get("reasoning_effort"):
        fields.update(_effort_fields(effort, vendor))
    return fields


def responses_fields(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request to Responses for these parameters."""
    fields = dict(parameters)
    reasoning = {
        key: fields.pop(name)
        for key, name in (("effort", "reasoning_effort"), ("summary", "reasoning_summary"))
        if name in fields
    }
    if reasoning:
        fields["reasoning"] = reasoning
    if "verbosity" in fields:
        fields["text"] = {"verbosity": fields.pop("verbosity")}
    return fields


def takes_temperature(vendor: Vendor, model: str, parameters: Mapping[str, Any]) -> bool:
    """Report whether the model accepts a temperature. OpenAI's reasoning models refuse one while they reason."""
    if vendor is not OPENAI or not is_reasoning_model(model):
        return True
    return parameters.get("reasoning_effort") == "none" and fnmatch_any(model, SAMPLING_MODELS)


def is_reasoning_model(model: str) -> bool:
    """Report whether this is the name of a reasoning model of OpenAI."""
    return fnmatch_any(model, REASONING_MODELS)


def fnmatch_any(model: str, patterns: tuple[str, ...]) -> bool:
    """Report whether the name matches one of the patterns."""
    return any(fnmatchcase(model, pattern) for pattern in patterns)


def _effort_fields(effort: str, vendor: Vendor) -> dict[str, Any]:
    match vendor.effort:
        case "object":
            return {"reasoning": {"effort": effort}}
        case "thinking" if effort == "none":
            return {"thinking": {"type": "disabled"}}
        case "thinking":
            return {"thinking": {"type": "enabled"}, "reasoning_effort": effort}
        case "field":
            return {"reasoning_effort": effort}
