"""Builds the arguments of Converse, ConverseStream and CountTokens. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trunkline.api.model import ModelRequest
from trunkline.api.tool import ToolSchema
from trunkline_bedrock.bedrock_models import ModelFeatures, features_of
from trunkline_bedrock.message_content import (
    Block,
    ConversationBuilder,
    own_reasoning,
    split_system,
    text_blocks,
    tool_name,
)
from trunkline_bedrock.settings import MIN_THINKING_BUDGET, BedrockSettings

BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_000}
"""The tokens that each level of effort allows, for models that take a number of tokens."""

CACHE_POINT: Block = {"cachePoint": {"type": "default"}}
CACHED_TURNS = 2
"""The number of user messages with a cache point: with the tools and the system messages these are the four that the
vendor permits.
"""

CONTINUE = "Your answer was interrupted there. Continue it exactly where it stops, and repeat nothing."
"""The user's message that continues an answer if the model does not continue a final assistant message."""

NO_CALLS = "Do not call a tool in this answer."
"""The system message for a request without calls. Converse requires the tools of earlier calls and cannot forbid new
ones.
"""

SIMPLE_SCHEMA = ("type", "properties", "required")
"""The keywords at the top of a tool's schema that every model takes."""

COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
"""The fields that CountTokens takes."""


class ReasoningPlan(NamedTuple):
    """The form in which a request asks for reasoning: fields of the model, Converse's ``effort``, and whether the model
    reasons.
    """

    fields: dict[str, Any]
    effort: str | None = None
    on: bool = False


def build_request(request: ModelRequest, model: str, settings: BedrockSettings) -> dict[str, Any]:
    """Return the arguments of Converse and ConverseStream."""
    features = features_of(model, settings.base_model)
    parameters = {**settings.parameters, **request.parameters}
    max_tokens = request.max_tokens or settings.max_tokens
    plan = _plan_reasoning(request, model, features, parameters, max_tokens)
    lead, rest = split_system(request.messages)
    system = [block for message in lead for block in text_blocks(message.content)]
    turns = ConversationBuilder(model, features, thinking=plan.on).build(rest)
    _end_conversation(turns, request, may_prefill=features.prefill and not plan.on)
    tools = _tools(request, turns, features)
    if tools and (request.tool_choice.mode == "none" or not request.tools):
        system += text_blocks(NO_CALLS)
    body: dict[str, Any] = {"modelId": model, "messages": turns}
    if system:
        body["system"] = system
    if tools:
        body["toolConfig"] = tools
    if limits := _inference(request, features, plan, parameters, max_tokens):
        body["inferenceConfig"] = limits
    if fields := {**plan.fields, **settings.extra_fields}:
        body["additionalModelRequestFields"] = fields
    if plan.effort is not None:
        body["outputConfig"] = {"effort": plan.effort}
    body |= _plain_parameters(parameters)
    if settings.prompt_cache:
        _mark_cache(body, features)
    return body


def count_request(request: ModelRequest, model: str, settings: BedrockSettings) -> dict[str, Any]:
    """Return the ``input`` of CountTokens."""
    built = build_request(request, model, settings)
    return {"converse": {key: built[key] for key in COUNTED if key in built}}


def may_stream(body: Mapping[str, Any], model: str, settings: BedrockSettings) -> bool:
    """Report whether the model streams the answer to this request."""
    features = features_of(model, settings.base_model)
    return settings.streaming and (features.streams_tools or "toolConfig" not in body)


# Reasoning ---------------------------------------------------------------------------------------------------


def _plan_reasoning(
    request: ModelRequest,
    model: str,
    features: ModelFeatures,
    parameters: Mapping[str, Any],
    max_tokens: int | None,
) -> ReasoningPlan:
    effort = parameters.get("reasoning_effort")
    match features.thinking:
        case "none":
            return ReasoningPlan({})
        case "effort":
            level = _nearest_effort(effort, features)
            return ReasoningPlan({"reasoning_effort": level} if level else {}, on=True)
        case "nova":
            if effort in (None, "none"):
                return ReasoningPlan({})
            level = _nearest_effort(effort, features)
            return ReasoningPlan(
                {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}}, on=True
            )
    # A forced call and Claude's thinking exclude each other.
    forced = request.tool_choice.mode == "required" and bool(request.tools)
    if features.thinking == "budget":
        return _with_budget(request, model, parameters, max_tokens, off=effort == "none" or forced)
    if features.off == "omit" and (effort in (None, "none") or forced):
        return ReasoningPlan({})
    if features.off and (effort == "none" or (forced and features.off == "disabled")):
        # With between_tools the model thinks only between its calls, and these blocks are sent back as well.
        return ReasoningPlan({"thinking": {"type": features.off}}, on=features.off == "between_tools")
    thinking = {"type": "adaptive", "display": "summarized"}
    return ReasoningPlan({"thinking": thinking}, _nearest_effort(effort, features), on=True)


def _with_budget(
    request: ModelRequest,
    model: str,
    parameters: Mapping[str, Any],
    max_tokens: int | None,
    *,
    off: bool,
) -> ReasoningPlan:
    given = parameters.get("thinking_budget", BUDGETS.get(parameters.get("reasoning_effort", ""), 0))
    budget = min(given, max_tokens // 2) if max_tokens else given
    if off or budget < MIN_THINKING_BUDGET or _loop_lacks_thinking(request, model):
        return ReasoningPlan({})
    return ReasoningPlan({"thinking": {"type": "enabled", "budget_tokens": budget}}, on=True)


def _loop_lacks_thinking(request: ModelRequest, model: str) -> bool:
    """Report whether the results at the end belong to an answer without thinking of this model, such as that of
    another vendor. The API refuses a request with thinking then.
    """
    last = next((message for message in reversed(request.messages) if message.role == "assistant"), None)
    return last is not None and bool(last.tool_calls) and not own_reasoning(last, model)


def _nearest_effort(effort: str | None, features: ModelFeatures) -> str | None:
    """Return the level that the model has: the given one or the next lower."""
    if effort is None:
        return None
    from_least = ("none", "low", "medium", "high", "xhigh", "max")
    wanted = from_least[: from_least.index(effort) + 1] if effort in from_least else ()
    return next((level for level in reversed(wanted) if level in features.efforts), features.efforts[0])


# Messages and tools ------------------------------------------------------------------------------------------


def _end_conversation(turns: list[dict[str, Any]], request: ModelRequest, *, may_prefill: bool) -> None:
    """Add the beginning of the answer, and let the conversation end as the model requires."""
    if partial := text_blocks(request.partial):
        if turns[-1]["role"] == "assistant":
            turns[-1]["content"] += partial
        else:
            turns.append({"role": "assistant", "content": partial})
    if turns[-1]["role"] != "assistant":
        return
    last = turns[-1]["content"][-1]
    if may_prefill and request.tool_choice.mode != "required" and "text" in last:
        last["text"] = last["text"].rstrip()  # the vendor refuses white space at the end
    else:
        turns.append({"role": "user", "content": text_blocks(CONTINUE)})


def _tools(
    request: ModelRequest, turns: Sequence[Mapping[str, Any]], features: ModelFeatures
) -> dict[str, Any] | None:
    """Return the tools and the choice. The vendor requires tools if the conversation has calls."""
    choice = request.tool_choice
    called = _called_tools(turns)
    if choice.mode == "none":
        offered = request.tools if called else ()
    else:
        offered = tuple(tool for tool in request.tools if not choice.tools or tool.name in choice.tools)
    if not offered:
        return {"tools": called} if called else None
    tools = [_tool(tool, features) for tool in offered]
    if choice.mode != "required":
        return {"tools": tools}
    if len(choice.tools) == 1 and features.forces:
        return {"tools": tools, "toolChoice": {"tool": {"name": tools[0]["toolSpec"]["name"]}}}
    return {"tools": tools, "toolChoice": {"any": {}}}


def _tool(tool: ToolSchema, features: ModelFeatures) -> Block:
    made: Block = {"name": tool_name(tool.name)}
    if tool.description.strip():
        made["description"] = tool.description
    schema = {"type": "object", **(tool.parameters or {"properties": {}})}
    if features.simple_schemas:
        schema = {key: schema[key] for key in SIMPLE_SCHEMA if key in schema}
    return {"toolSpec": {**made, "inputSchema": {"json": schema}}}


def _called_tools(turns: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Return definitions of the tools that the conversation calls."""
    blocks = (block for turn in turns for block in turn["content"])
    names = dict.fromkeys(block["toolUse"]["name"] for block in blocks if "toolUse" in block)
    schema = {"json": {"type": "object", "properties": {}}}
    return [{"toolSpec": {"name": name, "inputSchema": schema}} for name in names]


# Other fields ------------------------------------------------------------------------------------------------


def _inference(
    request: ModelRequest,
    features: ModelFeatures,
    plan: ReasoningPlan,
    parameters: Mapping[str, Any],
    max_tokens: int | None,
) -> dict[str, Any]:
    """Return the limits and the sampling that the model takes in this request."""
    limits: dict[str, Any] = {}
    samples = features.sampling and not (plan.on and features.thinking != "effort")
    if max_tokens is not None and not _is_unlimited(plan):
        limits["maxTokens"] = max_tokens
    if samples and request.temperature is not None:
        limits["temperature"] = request.temperature
    if samples and "top_p" in parameters:
        limits["topP"] = parameters["top_p"]
    if "stop_sequences" in parameters:
        limits["stopSequences"] = list(parameters["stop_sequences"])
    return limits


def _is_unlimited(plan: ReasoningPlan) -> bool:
    """Report whether the model refuses a limit of tokens, as Nova does at the highest level of reasoning."""
    config: dict[str, Any] = plan.fields.get("reasoningConfig", {})
    return bool(config) and config["maxReasoningEffort"] == "high"


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are fields of the request."""
    plain: dict[str, Any] = {}
    if "service_tier" in parameters:
        plain["serviceTier"] = {"type": parameters["service_tier"]}
    if "latency" in parameters:
        plain["performanceConfig"] = {"latency": parameters["latency"]}
    if "guardrail" in parameters:
        plain["guardrailConfig"] = dict(parameters["guardrail"])
    return plain


def _mark_cache(body: dict[str, Any], features: ModelFeatures) -> None:
    """Mark the end of the stable prefix: the last tool, the last system block and the last user messages."""
    if "tools" in features.cache and "toolConfig" in body:
        body["toolConfig"]["tools"].append(CACHE_POINT)
    if "system" in features.cache and "system" in body:
        body["system"].append(CACHE_POINT)
    if "messages" in features.cache:
        users = [turn for turn in body["messages"] if turn["role"] == "user"]
        if features.marks_text:
            users = [turn for turn in users if "text" in turn["content"][-1]]
        for turn in users[-CACHED_TURNS:]:
            turn["content"].append(CACHE_POINT)
