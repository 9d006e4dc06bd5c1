"""Builds the bodies of requests to Messages and to its count of tokens. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trunkline.api.model import ModelRequest
from trunkline.api.tool import ToolSchema
from trunkline_anthropic.claude_models import EFFORTS, ModelTraits, traits_of
from trunkline_anthropic.message_content import (
    Block,
    conversation,
    own_reasoning,
    split_system,
    text_blocks,
    tool_name,
)
from trunkline_anthropic.output_schema import enforceable
from trunkline_anthropic.settings import MIN_THINKING_BUDGET, AnthropicSettings

BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_000}
"""The tokens that each level of effort allows, for models that take a number of tokens."""

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The beta header of ``thinking.block_binding``."""

CACHE_MARK = {"type": "ephemeral"}
CACHED_TURNS = 2
"""The number of user messages that are marked for the prompt cache: with the tools and the system messages these are
the four marks that the vendor permits.
"""

CONTINUE = "Your answer was interrupted there. Continue it exactly where it stops, and repeat nothing."
"""The user's message that continues an answer if the model does not continue a final assistant message."""


UNCOUNTED = frozenset(
    {"max_tokens", "stream", "stop_sequences", "metadata", "service_tier", "inference_geo", "temperature"}
)
"""The fields that the count of tokens does not take."""


class ThinkingPlan(NamedTuple):
    """The request for thinking: the fields ``thinking`` and ``output_config.effort``, and whether blocks of
    thinking belong to the conversation.
    """

    field: dict[str, Any] | None = None
    effort: str | None = None
    on: bool = False


class BuiltRequest(NamedTuple):
    """The body and the headers of one request."""

    body: dict[str, Any]
    headers: dict[str, str]


def build_request(request: ModelRequest, model: str, settings: AnthropicSettings) -> BuiltRequest:
    """Return the request for a streamed answer."""
    traits = traits_of(model)
    parameters = {**settings.parameters, **request.parameters}
    max_tokens = request.max_tokens or settings.max_tokens or traits.default_max_tokens
    plan = _plan_thinking(request, model, settings, parameters, max_tokens)
    lead, rest = split_system(request.messages)
    system = [block for message in lead for block in text_blocks(message.content)]
    turns = conversation(rest, model, thinking=plan.on)
    _end_conversation(turns, request, may_prefill=traits.prefill and not plan.on)
    body: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "stream": True, "messages": turns}
    if system:
        body["system"] = system
    body |= _tools(request, turns, parameters)
    if plan.field is not None:
        body["thinking"] = plan.field
    if config := _output_config(request, plan):
        body["output_config"] = config
    if request.temperature is not None and settings.base_url is not None and traits.sampling and not plan.on:
        body["temperature"] = request.temperature  # Anthropic itself has no such parameter any more
    body |= _plain_parameters(parameters)
    if settings.prompt_cache:
        _mark_cache(body)
    headers = {"anthropic-beta": BINDING_BETA} if "block_binding" in (plan.field or {}) else {}
    return BuiltRequest({**body, **settings.extra_body}, headers)


def count_request(request: ModelRequest, model: str, settings: AnthropicSettings) -> BuiltRequest:
    """Return the request for the number of input tokens."""
    built = build_request(request, model, settings)
    return BuiltRequest(
        {key: value for key, value in built.body.items() if key not in UNCOUNTED}, built.headers
    )


# Thinking ----------------------------------------------------------------------------------------------------


def _plan_thinking(
    request: ModelRequest,
    model: str,
    settings: AnthropicSettings,
    parameters: Mapping[str, Any],
    max_tokens: int,
) -> ThinkingPlan:
    traits = traits_of(model)
    effort = parameters.get("reasoning_effort")
    # A forced call and thinking exclude each other.
    forced = request.tool_choice.mode == "required" and bool(request.tools)
    if traits.thinking == "budget":
        wanted = 0 if effort == "none" or forced else _budget(parameters, effort)
        return _with_budget(request, model, min(wanted, max_tokens // 2), parameters)
    if traits.thinking == "none" or (traits.off == "omit" and (effort in (None, "none") or forced)):
        return ThinkingPlan()
    binding = traits.binding and settings.base_url is None
    if traits.off and (effort == "none" or (forced and traits.off == "disabled")):
        # With between_tools the model thinks only between its calls, and these blocks are sent back as well.
        return ThinkingPlan({"type": traits.off}, None, traits.off == "between_tools")
    field: dict[str, Any] = {"type": "adaptive", "display": parameters.get("thinking_display", "summarized")}
    return ThinkingPlan(_bound(field) if binding else field, _nearest_effort(effort, traits), True)


def _bound(field: dict[str, Any]) -> dict[str, Any]:
    """Let the API drop blocks of thinking after a change of what precedes them, such as a tool that was loaded. It
    would refuse the request otherwise.
    """
    return {**field, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def _budget(parameters: Mapping[str, Any], effort: str | None) -> int:
    given = parameters.get("thinking_budget")
    return given if isinstance(given, int) else BUDGETS.get(effort or "", 0)


def _with_budget(
    request: ModelRequest, model: str, budget: int, parameters: Mapping[str, Any]
) -> ThinkingPlan:
    if budget < MIN_THINKING_BUDGET or _loop_lacks_thinking(request, model):
        return ThinkingPlan()
    field = {"type": "enabled", "budget_tokens": budget}
    if display := parameters.get("thinking_display"):
        field["display"] = display
    return ThinkingPlan(field, None, True)


def _loop_lacks_thinking(request: ModelRequest, model: str) -> bool:
    """Report whether the results at the end belong to an answer without thinking of this model, such as that of
    another vendor. The API refuses a request with thinking then.
    """
    last = next((message for message in reversed(request.messages) if message.role == "assistant"), None)
    return last is not None and bool(last.tool_calls) and not own_reasoning(last, model)


def _nearest_effort(effort: str | None, traits: ModelTraits) -> str | None:
    if effort is None:
        return None
    wanted = EFFORTS.index(effort) if effort in EFFORTS else 0
    return next((one for one in reversed(EFFORTS[: wanted + 1]) if one in traits.efforts), traits.efforts[0])


# Messages ----------------------------------------------------------------------------------------------------


def _end_conversation(turns: list[dict[str, Any]], request: ModelRequest, *, may_prefill: bool) -> None:
    """Add the beginning of the answer, and let the conversation end as the model requires."""
    if partial := text_blocks(request.partial):
        if turns[-1]["role"] == "assistant":
            turns[-1]["content"] += partial
        else:
            turns.append({"role": "assistant", "content": partial})
    if turns[-1]["role"] != "assistant":
        return
    may_prefill = may_prefill and request.response_format is None and request.tool_choice.mode != "required"
    last = turns[-1]["content"][-1]
    if may_prefill and last["type"] == "text":
        last["text"] = last["text"].rstrip()  # the vendor refuses white space at the end
    else:
        turns.append({"role": "user", "content": text_blocks(CONTINUE)})


def _tools(
    request: ModelRequest, turns: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    choice = request.tool_choice
    offered = [tool for tool in request.tools if not choice.tools or tool.name in choice.tools]
    tools = [_tool(tool) for tool in (request.tools if choice.mode == "none" else offered)]
    if not tools:
        called = _called_tools(turns)
        return {"tools": called, "tool_choice": {"type": "none"}} if called else {}
    single = parameters.get("disable_parallel_tool_use")
    parallel = {} if single is None else {"disable_parallel_tool_use": single}
    if choice.mode == "none":
        return {"tools": tools, "tool_choice": {"type": "none"}}
    if choice.mode == "required" and len(choice.tools) == 1:
        forced = {"type": "tool", "name": tools[0]["name"], "disable_parallel_tool_use": True}
        return {"tools": tools, "tool_choice": forced}
    if choice.mode == "required":
        return {"tools": tools, "tool_choice": {"type": "any", **parallel}}
    return {"tools": tools, **({"tool_choice": {"type": "auto", **parallel}} if parallel else {})}


def _tool(tool: ToolSchema) -> Block:
    made: Block = {"name": tool_name(tool.name)}
    if tool.description:
        made["description"] = tool.description
    return {**made, "input_schema": {"type": "object", **(tool.parameters or {"properties": {}})}}


def _called_tools(turns: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Return definitions of the tools that the conversation calls. The vendor refuses calls without any definition."""
    blocks = (block for turn in turns for block in turn["content"])
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    return [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in names]


# Other fields ------------------------------------------------------------------------------------------------


def _output_config(request: ModelRequest, plan: ThinkingPlan) -> dict[str, Any]:
    config: dict[str, Any] = {} if plan.effort is None else {"effort": plan.effort}
    wanted = request.response_format
    if wanted is not None and wanted.schema is not None:
        schema = dict(wanted.schema)
        if wanted.description:
            schema.setdefault("description", wanted.description)
        config["format"] = {"type": "json_schema", "schema": enforceable(schema)}
    return config


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are fields of the request under their own names."""
    plain = {
        name: parameters[name]
        for name in ("stop_sequences", "service_tier", "inference_geo")
        if name in parameters
    }
    return {**plain, **({"metadata": {"user_id": parameters["user_id"]}} if "user_id" in parameters else {})}


def _mark_cache(body: dict[str, Any]) -> None:
    """Mark the end of the stable prefix: the last tool, the last system block and the last user messages."""
    for place in ("tools", "system"):
        if body.get(place):
            body[place][-1]["cache_control"] = CACHE_MARK
    users = [turn for turn in body["messages"] if turn["role"] == "user"]
    for turn in users[-CACHED_TURNS:]:
        turn["content"][-1]["cache_control"] = CACHE_MARK
