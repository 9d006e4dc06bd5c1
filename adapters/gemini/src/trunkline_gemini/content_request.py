"""Builds the bodies of requests to generate content, to count tokens and to embed. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from trunkline.api.model import ModelRequest
from trunkline.api.tool import ToolSchema
from trunkline_gemini.contents import Content, conversation, function_name, split_system, text_parts
from trunkline_gemini.gemini_models import traits_of
from trunkline_gemini.settings import GeminiSettings

CONTINUE = "Your answer was interrupted there. Continue it exactly where it stops, and repeat nothing."
"""The user's content that continues an answer. Newer models refuse a request that ends with a model's content."""


CONFIG_NAMES = {
    "stop_sequences": "stopSequences",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
"""The parameters that are fields of ``generationConfig``, with the vendor's names."""


def resource(model: str) -> str:
    """Return the path of a model below the API's version."""
    return quote(model if "/" in model else f"models/{model}", safe="/")


def build_request(request: ModelRequest, model: str, settings: GeminiSettings) -> dict[str, Any]:
    """Return the body of a request for an answer."""
    parameters = {**settings.parameters, **request.parameters}
    lead, rest = split_system(request.messages)
    contents = conversation(rest, model)
    _end_conversation(contents, request.partial)
    config = _config(request, model, parameters)
    body: dict[str, Any] = {"contents": contents}
    system = [part for message in lead for part in text_parts(message.content)]
    if system:
        body["systemInstruction"] = {"parts": system}
    body |= _tools(request)
    if config:
        body["generationConfig"] = config
    if "safety_settings" in parameters:
        body["safetySettings"] = list(parameters["safety_settings"])
    if "service_tier" in parameters:
        body["serviceTier"] = parameters["service_tier"]
    return _merged(body, settings.extra_body)


def count_request(request: ModelRequest, model: str, settings: GeminiSettings) -> dict[str, Any]:
    """Return the body of a request for the number of input tokens."""
    return {"generateContentRequest": {"model": resource(model), **build_request(request, model, settings)}}


def embedding_request(texts: Sequence[str], model: str, dimensions: int | None = None) -> dict[str, Any]:
    """Return the body of a request for one vector for each text, of ``dimensions`` numbers."""
    each: dict[str, Any] = {"model": resource(model)}
    if dimensions is not None:
        each["outputDimensionality"] = dimensions
    return {"requests": [{**each, "content": {"parts": [{"text": text}]}} for text in texts]}


def _end_conversation(contents: list[Content], partial: str) -> None:
    """Add the beginning of the answer, and let the conversation end with the user."""
    if parts := text_parts(partial):
        if contents[-1]["role"] == "model":
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": "model", "parts": parts})
    if contents[-1]["role"] == "model":
        contents.append({"role": "user", "parts": text_parts(CONTINUE)})


def _config(request: ModelRequest, model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``generationConfig``."""
    config: dict[str, Any] = {
        field: parameters[name] for name, field in CONFIG_NAMES.items() if name in parameters
    }
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if "media_resolution" in parameters:
        config["mediaResolution"] = f"MEDIA_RESOLUTION_{parameters['media_resolution'].upper()}"
    if thinking := _thinking(model, parameters):
        config["thinkingConfig"] = thinking
    wanted = request.response_format
    if wanted is not None and wanted.schema is not None:
        described = {"description": wanted.description} if wanted.description else {}
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = {**described, **wanted.schema}
    return config


def enforces_format(request: ModelRequest, model: str) -> bool:
    """Report whether the vendor enforces the format: a strict schema, and with tools for newer models only."""
    wanted = request.response_format
    calls = bool(request.tools) and request.tool_choice.mode != "none"
    strict = wanted is not None and wanted.schema is not None and wanted.strict
    return strict and (not calls or traits_of(model).json_with_tools)


def _thinking(model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    traits = traits_of(model)
    if traits.thinking == "none":
        return {}
    thinking: dict[str, Any] = {"includeThoughts": parameters.get("include_thoughts", True)}
    effort, budget = parameters.get("reasoning_effort"), parameters.get("thinking_budget")
    if traits.thinking == "level":
        return thinking if effort is None else {**thinking, "thinkingLevel": traits.level(effort).upper()}
    if budget is None and effort is not None:
        budget = traits.budget(effort)
    if budget is None:
        return thinking
    if budget == 0:
        return {"thinkingBudget": 0}  # thoughts cannot be included in an answer without thinking
    return {**thinking, "thinkingBudget": budget}


def _tools(request: ModelRequest) -> dict[str, Any]:
    choice = request.tool_choice
    chosen = [tool for tool in request.tools if not choice.tools or tool.name in choice.tools]
    # Only forced calls can be restricted by name; otherwise the other tools are left out.
    offered = chosen if choice.mode == "auto" else request.tools
    if not offered:
        return {}
    tools = [{"functionDeclarations": [_declaration(tool) for tool in offered]}]
    if choice.mode == "auto":
        return {"tools": tools}
    calling: dict[str, Any] = {"mode": "NONE" if choice.mode == "none" else "ANY"}
    if choice.mode == "required" and choice.tools:
        calling["allowedFunctionNames"] = [function_name(tool.name) for tool in chosen]
    return {"tools": tools, "toolConfig": {"functionCallingConfig": calling}}


def _declaration(tool: ToolSchema) -> dict[str, Any]:
    made: dict[str, Any] = {"name": function_name(tool.name)}
    if tool.description:
        made["description"] = tool.description
    if tool.parameters.get("properties"):
        made["parametersJsonSchema"] = {"type": "object", **tool.parameters}
    return made


def _merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with the extra fields. Objects that both have are joined."""
    made = dict(body)
    for name, value in extra.items():
        old = made.get(name)
        made[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return made
