"""The rules by which Bedrock refuses requests to Converse, as far as they concern transcripts.

The rules follow the vendor's reference and the requests that its API answers with 400. The scripted servers check
every request, so every request of a test is one that the vendor accepts. Pure functions.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from trunkline.testing.vendor_apis.bedrock_messages import cache_points, sign_reasoning
from trunkline.testing.vendor_apis.vendor_api import RuleViolation

FIELDS = frozenset(
    {
        "messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields",
        "promptVariables", "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "serviceTier",
        "outputConfig",
    }
)  # fmt: skip
BLOCKS = frozenset({"text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint"})
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
DOCUMENT_NAME = re.compile(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]{1,200}")
IMAGE_FORMATS = frozenset({"png", "jpeg", "gif", "webp"})
DOCUMENT_FORMATS = frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"})
MAX_CACHE_POINTS = 4
MIN_THINKING_BUDGET = 1024

WITHOUT_CACHE = ("*meta.*", "*mistral.*", "*openai.*", "*deepseek.*", "*anthropic.claude-3-haiku*")
WITHOUT_TOOL_CACHE = ("*amazon.nova*",)
"""The models that refuse cache points, and those that refuse them after the tools."""

SIMPLE_SCHEMAS = ("*amazon.nova*",)
"""The models whose schemas of tools have only a type, properties and required ones, and whose cache points in a message
follow a text."""

STREAMS_NO_TOOLS = ("*meta.llama*", "*mistral.*", "*writer.*", "*deepseek.*")
"""The models that refuse tools in ConverseStream."""

SEPARATE = ("*meta.llama*", "*mistral.*")
"""The models that refuse text beside calls or results."""

STATUS = ("*anthropic.*", "*amazon.nova*", "scripted")
"""The models whose results may have a status."""

PREFILL = ("*anthropic.claude-3*", "*anthropic.claude-*-4-[0125]*", "*anthropic.claude-opus-4-1*", "scripted")
"""The models that continue a final assistant message."""


def find_violations(model: str, body: Any, *, streams: bool = False) -> Iterator[RuleViolation]:
    """Yield the rules that a request to Converse or, with ``streams``, to ConverseStream violates."""
    if not isinstance(body, dict):
        return
    if streams and "toolConfig" in body and _matches(model, STREAMS_NO_TOOLS):
        yield RuleViolation("toolConfig", "This model doesn't support tool use in streaming mode.")
    for field in sorted(set(body) - FIELDS):
        yield RuleViolation(field, "unknown field")
    for number, block in enumerate(body.get("system") or ()):
        if not ("cachePoint" in block or str(block.get("text", "")).strip()):
            yield RuleViolation(f"system.{number}", "The text field is blank")
    yield from _tools(model, body)
    yield from _limits(body)
    yield from _cache(model, body)
    yield from _messages(model, body)


def _tools(model: str, body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    blocks = [block for message in body.get("messages") or () for block in message.get("content") or ()]
    config = body.get("toolConfig")
    if config is None:
        if any("toolUse" in block or "toolResult" in block for block in blocks):
            yield RuleViolation(
                "toolConfig",
                "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
            )
        return
    specs = [tool["toolSpec"] for tool in config.get("tools") or () if "toolSpec" in tool]
    if not specs:
        yield RuleViolation("toolConfig.tools", "an empty list")
    names = [str(spec.get("name")) for spec in specs]
    for number, (name, spec) in enumerate(zip(names, specs, strict=True)):
        at = f"toolConfig.tools.{number}.toolSpec"
        if not NAME.fullmatch(name):
            yield RuleViolation(f"{at}.name", f"{name!r} is no name of a tool")
        if name in names[:number]:
            yield RuleViolation(f"{at}.name", f"The tool {name} is already defined")
        if "description" in spec and not str(spec["description"]).strip():
            yield RuleViolation(f"{at}.description", "a blank text")
        schema = (spec.get("inputSchema") or {}).get("json")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield RuleViolation(f"{at}.inputSchema.json.type", "must be one of the following: object")
        elif _matches(model, SIMPLE_SCHEMAS) and set(schema) - {"type", "properties", "required"}:
            yield RuleViolation(f"{at}.inputSchema.json", "unsupported keywords at the top of the schema")
    choice = config.get("toolChoice") or {"auto": {}}
    if len(choice) != 1 or not set(choice) <= {"auto", "any", "tool"}:
        yield RuleViolation("toolConfig.toolChoice", "not one of auto, any and tool")
    if "tool" in choice and choice["tool"].get("name") not in names:
        yield RuleViolation("toolConfig.toolChoice.tool.name", "names no tool of the request")
    if set(choice) & {"any", "tool"} and _thinks(body):
        yield RuleViolation(
            "toolConfig.toolChoice", "Thinking may not be enabled when tool_choice forces tool use."
        )


def _limits(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    limits = body.get("inferenceConfig") or {}
    fields = body.get("additionalModelRequestFields") or {}
    thinking = fields.get("thinking") or {}
    if "maxTokens" in limits and limits["maxTokens"] < 1:
        yield RuleViolation("inferenceConfig.maxTokens", "must be at least 1")
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        if budget < MIN_THINKING_BUDGET:
            yield RuleViolation("thinking.budget_tokens", f"must be at least {MIN_THINKING_BUDGET}")
        if "maxTokens" in limits and limits["maxTokens"] <= budget:
            yield RuleViolation("inferenceConfig.maxTokens", "must be greater than thinking.budget_tokens")
    if _thinks(body) and "temperature" in limits and limits["temperature"] != 1:
        yield RuleViolation("inferenceConfig.temperature", "may only be set to 1 when thinking is enabled")
    nova = fields.get("reasoningConfig") or {}
    if nova.get("maxReasoningEffort") == "high" and {"maxTokens", "temperature", "topP"} & set(limits):
        yield RuleViolation("inferenceConfig", "must not be set with maxReasoningEffort high")


def _cache(model: str, body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    points = cache_points(body)
    if len(points) > MAX_CACHE_POINTS:
        yield RuleViolation(points[-1], f"A maximum of {MAX_CACHE_POINTS} cache points may be provided.")
    if points and _matches(model, WITHOUT_CACHE):
        yield RuleViolation(
            points[0], "You invoked an unsupported model or your request did not allow prompt caching."
        )
    if _matches(model, SIMPLE_SCHEMAS):
        for number, message in enumerate(body.get("messages") or ()):
            blocks = message.get("content") or ()
            for before, block in pairwise(blocks):
                if "cachePoint" in block and "text" not in before:
                    yield RuleViolation(
                        f"messages.{number}.content", "extraneous key [cachePoint] is not permitted"
                    )
    if _matches(model, WITHOUT_TOOL_CACHE) and any(point.startswith("toolConfig") for point in points):
        yield RuleViolation("toolConfig.tools", "the model has no cache points after tools")


def _messages(model: str, body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    messages: Sequence[Mapping[str, Any]] = body.get("messages") or ()
    if not messages or messages[0].get("role") != "user":
        yield RuleViolation("messages", "A conversation must start with a user message.")
        return
    seen: set[str] = set()
    documents: set[str] = set()
    open_calls: set[str] = set()
    before = ""
    for number, message in enumerate(messages):
        at, role = f"messages.{number}.content", message.get("role")
        blocks: Sequence[Mapping[str, Any]] = message.get("content") or ()
        if role not in ("user", "assistant"):
            yield RuleViolation(f"messages.{number}.role", f"no role {role!r}")
        if role == before:
            yield RuleViolation(
                f"messages.{number}.role", f'roles must alternate, but found multiple "{role}" roles'
            )
        if not blocks:
            yield RuleViolation(at, "The content field is empty.")
        before = str(role)
        yield from _blocks(blocks, at, documents)
        yield from _results(model, blocks, at, open_calls, role == "user")
        if role == "assistant":
            yield from _answer(model, blocks, at, seen)
            open_calls = {str(block["toolUse"].get("toolUseId")) for block in blocks if "toolUse" in block}
    if before == "assistant":
        yield from _ending(model, messages[-1].get("content") or (), body)
    if open_calls:
        yield RuleViolation(
            "messages", f"Expected toolResult blocks for the following Ids: {', '.join(open_calls)}"
        )


def _blocks(blocks: Sequence[Mapping[str, Any]], at: str, documents: set[str]) -> Iterator[RuleViolation]:
    for number, block in enumerate(blocks):
        place = f"{at}.{number}"
        if len(block) != 1 or not set(block) <= BLOCKS:
            yield RuleViolation(place, f"not one known block: {sorted(block)}")
        if "text" in block and not str(block["text"]).strip():
            yield RuleViolation(
                f"{place}.text", "The text field is blank. Add text to the text field, and try again."
            )
        if "image" in block:
            yield from _file(block["image"], f"{place}.image", IMAGE_FORMATS)
        if "document" in block:
            yield from _file(block["document"], f"{place}.document", DOCUMENT_FORMATS)
            name = str(block["document"].get("name"))
            if not DOCUMENT_NAME.fullmatch(name):
                yield RuleViolation(
                    f"{place}.document.name", f"{name!r} has other characters than names of documents"
                )
            if name in documents:
                yield RuleViolation(f"{place}.document.name", "duplicate document names")
            documents.add(name)
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        yield RuleViolation(at, "a message with a document must have a text")


def _file(file: Mapping[str, Any], at: str, formats: frozenset[str]) -> Iterator[RuleViolation]:
    if file.get("format") not in formats:
        yield RuleViolation(f"{at}.format", f"no format {file.get('format')!r}")
    try:
        content = base64.b64decode((file.get("source") or {}).get("bytes", ""), validate=True)
    except (binascii.Error, TypeError, ValueError):
        content = b""
    if not content:
        yield RuleViolation(f"{at}.source.bytes", "no base64 of bytes")


def _results(
    model: str, blocks: Sequence[Mapping[str, Any]], at: str, open_calls: set[str], asks: bool
) -> Iterator[RuleViolation]:
    """Check that a user message has a result for each call of the answer before it, and no other."""
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    ids = [str(result.get("toolUseId")) for result in results]
    if results and not asks:
        yield RuleViolation(at, "toolResult blocks can only be in a user message")
    for id in ids:
        if id not in open_calls:
            yield RuleViolation(at, f"unexpected toolUseId {id!r} in toolResult blocks")
    if asks:
        for id in sorted(open_calls - set(ids)):
            yield RuleViolation(at, f"Expected toolResult blocks for the following Ids: {id}")
        open_calls.clear()
    if len(set(ids)) != len(ids):
        yield RuleViolation(at, "two results for one call")
    for result in results:
        texts = [str(part.get("text", "")) for part in result.get("content") or ()]
        if result.get("status") == "error" and not texts:
            yield RuleViolation(at, "The content field cannot be empty when status value is error.")
        if any(not text.strip() for text in texts):
            yield RuleViolation(at, "a blank text in a toolResult block")
        if "status" in result and not _matches(model, STATUS):
            yield RuleViolation(at, "This model doesn't support the status field.")
    if results and _matches(model, SEPARATE) and any("text" in block for block in blocks):
        yield RuleViolation(
            at, "Conversation blocks and tool result blocks cannot be provided in the same turn."
        )


def _answer(
    model: str, blocks: Sequence[Mapping[str, Any]], at: str, seen: set[str]
) -> Iterator[RuleViolation]:
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    for call in calls:
        id = str(call.get("toolUseId"))
        if not ID.fullmatch(id):
            yield RuleViolation(f"{at}.toolUse.toolUseId", f"{id!r} is no id of a call")
        if id in seen:
            yield RuleViolation(f"{at}.toolUse.toolUseId", f"{id!r} is the id of an earlier call")
        seen.add(id)
        if not NAME.fullmatch(str(call.get("name"))):
            yield RuleViolation(f"{at}.toolUse.name", f"{call.get('name')!r} is no name of a tool")
        if not isinstance(call.get("input"), dict):
            yield RuleViolation(f"{at}.toolUse.input", "The format of the value is not a JSON object")
    if calls and _matches(model, SEPARATE) and any("text" in block for block in blocks):
        yield RuleViolation(
            at, "Conversation blocks and tool use blocks cannot be provided in the same turn."
        )
    reasoning = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
    if reasoning and len(reasoning) == len(blocks):
        yield RuleViolation(at, "an assistant message of reasoning only")
    if reasoning and "reasoningContent" not in blocks[0]:
        yield RuleViolation(at, "the first block must be thinking")
    for block in reasoning:
        told = block.get("reasoningText")
        if told is not None and told.get("signature") != sign_reasoning(str(told.get("text"))):
            yield RuleViolation(f"{at}.reasoningContent", "Invalid `signature` in `thinking` block")


def _ending(
    model: str, blocks: Sequence[Mapping[str, Any]], body: Mapping[str, Any]
) -> Iterator[RuleViolation]:
    """Check an answer that the model is to continue."""
    if not _matches(model, PREFILL) or _thinks(body):
        yield RuleViolation("messages", "The model does not support assistant message prefill.")
    text = str(blocks[-1].get("text", "")) if blocks else ""
    if text != text.rstrip():
        yield RuleViolation("messages", "final assistant content cannot end with trailing whitespace")


def _thinks(body: Mapping[str, Any]) -> bool:
    thinking = (body.get("additionalModelRequestFields") or {}).get("thinking") or {}
    return thinking.get("type") in ("enabled", "adaptive")


def _matches(model: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in patterns)
