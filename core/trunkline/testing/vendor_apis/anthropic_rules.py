"""The rules by which Anthropic refuses requests to Messages, as far as they concern transcripts.

The rules follow the vendor's reference and the requests that its API answers with 400. The scripted servers check
every request, so every request of a test is one that the vendor accepts. Pure functions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trunkline.testing.vendor_apis.anthropic_messages import cache_marks, sign
from trunkline.testing.vendor_apis.vendor_api import RuleViolation

ROLES = frozenset({"user", "assistant"})
ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_CACHE_MARKS = 4
MIN_THINKING_BUDGET = 1024
BINDING_BETA = "thinking-binding-controls-2026-08-01"

FORCED_REFUSED = ("claude-fable-*", "claude-mythos-*", "claude-opus-5-5*", "claude-sonnet-5-5*")
"""The models that refuse ``tool_choice`` of the types ``any`` and ``tool``."""

ALWAYS_THINKING = ("claude-fable-*", "claude-mythos-*", "claude-opus-5-5*", "claude-sonnet-5-5*")
"""The models that refuse ``thinking: {type: disabled}``."""

BUDGET_MODELS = ("claude-3-7-*", "claude-*-4-0", "claude-*-4-2*", "claude-*-4-1*", "claude-*-4-5*")
BOTH_FORMS = ("claude-*-4-6*", "claude-mythos-preview")
"""BUDGET_MODELS take ``thinking: {type: enabled}`` only, BOTH_FORMS also the type ``adaptive``, later models that
type only."""

SAMPLING_VERSION = "2023-06-01"
"""The only version of the API that has ``temperature``, ``top_p`` and ``top_k``."""

SOURCES = {"image": ("base64", "url", "file"), "document": ("base64", "text", "content", "url", "file")}
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def find_violations(headers: Mapping[str, str], body: Any) -> tuple[RuleViolation, ...]:
    """Return the rules that a request violates."""
    if not isinstance(body, dict):
        return ()
    return (
        *_head(headers, body),
        *_system(body.get("system")),
        *_tools(body),
        *_thinking(headers, body),
        *_messages(body),
    )


def _head(headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    if "anthropic-version" not in headers:
        yield RuleViolation("anthropic-version", "header is required")
    if not headers.get("x-api-key") and not headers.get("authorization"):
        yield RuleViolation("x-api-key", "header is required")
    for name in ("model", "max_tokens"):
        if not body.get(name):
            yield RuleViolation(name, "Field required")
    if headers.get("anthropic-version") != SAMPLING_VERSION:
        for name in sorted({"temperature", "top_p", "top_k"} & set(body)):
            yield RuleViolation(name, "Extra inputs are not permitted")
    marks = cache_marks(dict(body))
    if len(marks) > MAX_CACHE_MARKS:
        yield RuleViolation(
            "cache_control", f"A maximum of 4 blocks may be provided. Found {len(marks)}: {', '.join(marks)}"
        )


def _system(system: Any) -> Iterator[RuleViolation]:
    if isinstance(system, list):
        for number, block in enumerate(system):
            yield from _text(block, f"system.{number}")
    elif system is not None and not (isinstance(system, str) and system.strip()):
        yield RuleViolation("system", "text content blocks must be non-empty")


def _tools(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    tools: Sequence[Any] = body.get("tools") or ()
    names = [str(tool.get("name")) for tool in tools]
    for number, (name, tool) in enumerate(zip(names, tools, strict=True)):
        if not NAME.fullmatch(name):
            yield RuleViolation(f"tools.{number}.name", f"{name!r} does not match the pattern {NAME.pattern}")
        if name in names[:number]:
            yield RuleViolation("tools", "Tool names must be unique.")
        if (tool.get("input_schema") or {}).get("type") != "object":
            yield RuleViolation(f"tools.{number}.input_schema.type", "Field required: object")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not tools:
        yield RuleViolation("tool_choice", "may only be specified while providing tools")
    forced = choice.get("type") in ("any", "tool")
    if forced and _matches(body.get("model"), FORCED_REFUSED):
        yield RuleViolation("tool_choice", 'type "tool" and "any" are not supported for this model')
    if forced and (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        yield RuleViolation("thinking", "may not be enabled when tool_choice forces tool use")
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield RuleViolation("tool_choice", f"Tool {choice.get('name')!r} not found in provided tools")


def _thinking(headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    thinking = body.get("thinking") or {}
    kind, model = thinking.get("type"), body.get("model")
    known = _matches(model, ("claude-*",))
    budget, both = _matches(model, BUDGET_MODELS), _matches(model, BOTH_FORMS)
    refused = known and {
        "enabled": not budget and not both,
        "adaptive": budget,
        "disabled": _matches(model, ALWAYS_THINKING),
        "between_tools": not _matches(model, ("claude-sonnet-5-5*",)),
    }.get(str(kind), False)
    if refused:
        yield RuleViolation("thinking", f'"thinking.type.{kind}" is not supported for this model')
    if kind in ("enabled", "adaptive") and body.get("temperature") not in (None, 1):
        yield RuleViolation("temperature", "may only be set to 1 when thinking is enabled")
    if "block_binding" in thinking and BINDING_BETA not in headers.get("anthropic-beta", ""):
        yield RuleViolation("thinking.block_binding", "Extra inputs are not permitted")
    if kind != "enabled":
        return
    given = thinking.get("budget_tokens") or 0
    if given < MIN_THINKING_BUDGET:
        yield RuleViolation("thinking.budget_tokens", "Input should be greater than or equal to 1024")
    if given >= (body.get("max_tokens") or 0):
        yield RuleViolation("max_tokens", "must be greater than `thinking.budget_tokens`")
    yield from _loop_without_thinking(body.get("messages") or [])


def _loop_without_thinking(messages: Sequence[Any]) -> Iterator[RuleViolation]:
    """With a budget, the answer that the last results belong to begins with its thinking."""
    if len(messages) < 2 or not any(b.get("type") == "tool_result" for b in _blocks(messages[-1])):
        return
    first = (_blocks(messages[-2]) or [{}])[0]
    if first.get("type") not in ("thinking", "redacted_thinking"):
        yield RuleViolation(
            f"messages.{len(messages) - 2}.content.0.type",
            f"Expected `thinking` or `redacted_thinking`, but found `{first.get('type')}`. When `thinking` is "
            "enabled, a final `assistant` message must start with a thinking block",
        )


def _messages(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield RuleViolation("messages", "at least one message is required")
        return
    if messages[0].get("role") != "user":
        yield RuleViolation("messages", "first message must use the `user` role")
    seen: set[str] = set()
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        at, role = f"messages.{number}", message.get("role")
        if role not in ROLES:
            yield RuleViolation(f"{at}.role", f"Input should be 'user' or 'assistant', not {role!r}")
        elif number and role == messages[number - 1].get("role"):
            # The vendor merges such messages; results and the end of the thinking then have other places.
            yield RuleViolation(f"{at}.role", f"follows a message with the role {role!r}")
        yield from _content(message, at)
        yield from _results(message, at, open_calls)
        for place, block in enumerate(_blocks(message)):
            if block.get("type") == "tool_use":
                yield from _tool_use(block, f"{at}.content.{place}", seen, body)
                open_calls.add(str(block.get("id")))
    if open_calls:
        yield from _unanswered(open_calls, f"messages.{len(messages)}")
    yield from _ending(messages[-1], body)


def _results(message: Mapping[str, Any], at: str, open_calls: set[str]) -> Iterator[RuleViolation]:
    """Check that every call of the message before has its result at the beginning of this one."""
    blocks, others = _blocks(message), False
    for number, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            others = True
            continue
        place, id = f"{at}.content.{number}", str(block.get("tool_use_id"))
        if id not in open_calls:
            yield RuleViolation(place, f"unexpected `tool_use_id` found in `tool_result` blocks: {id}")
        if others:
            yield RuleViolation(place, "`tool_result` blocks must come first in the content")
        if block.get("is_error") and not block.get("content"):
            yield RuleViolation(place, "content cannot be empty if `is_error` is true")
        open_calls.discard(id)
    if open_calls:
        yield from _unanswered(open_calls, at)


def _unanswered(open_calls: set[str], at: str) -> Iterator[RuleViolation]:
    ids = ", ".join(sorted(open_calls))
    yield RuleViolation(
        at, f"`tool_use` ids were found without `tool_result` blocks immediately after: {ids}"
    )
    open_calls.clear()


def _tool_use(
    block: Mapping[str, Any], at: str, seen: set[str], body: Mapping[str, Any]
) -> Iterator[RuleViolation]:
    id = str(block.get("id"))
    if not ID.fullmatch(id):
        yield RuleViolation(f"{at}.id", f"String should match pattern '^{ID.pattern}$'")
    if id in seen:
        yield RuleViolation(f"{at}.id", "`tool_use` ids must be unique")
    seen.add(id)
    if not NAME.fullmatch(str(block.get("name"))):
        yield RuleViolation(f"{at}.name", f"String should match pattern '^{NAME.pattern}$'")
    if not isinstance(block.get("input"), dict):
        yield RuleViolation(f"{at}.input", "Input should be a valid dictionary")
    if not body.get("tools"):
        yield RuleViolation("tools", "Requests which include `tool_use` blocks must define tools")


def _content(message: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    blocks = _blocks(message)
    if not blocks:
        yield RuleViolation(f"{at}.content", "all messages must have non-empty content")
    for number, block in enumerate(blocks):
        place, kind = f"{at}.content.{number}", block.get("type")
        if kind == "text":
            yield from _text(block, place)
        elif kind == "thinking":
            yield from _signature(block, place)
        elif kind == "redacted_thinking" and not block.get("data"):
            yield RuleViolation(f"{place}.data", "Field required")
        elif kind in SOURCES:
            yield from _source(block, str(kind), place)
        if kind in ("thinking", "redacted_thinking") and message.get("role") != "assistant":
            yield RuleViolation(place, "thinking blocks belong to assistant messages")
        if kind in ("thinking", "redacted_thinking") and "cache_control" in block:
            yield RuleViolation(f"{place}.cache_control", "Extra inputs are not permitted")


def _source(block: Mapping[str, Any], kind: str, at: str) -> Iterator[RuleViolation]:
    source = block.get("source") or {}
    if source.get("type") not in SOURCES[kind]:
        yield RuleViolation(
            f"{at}.source.type", f"{source.get('type')!r} is no source of a block of type {kind}"
        )
    if source.get("type") == "base64":
        permitted = IMAGE_TYPES if kind == "image" else {"application/pdf"}
        if source.get("media_type") not in permitted:
            yield RuleViolation(
                f"{at}.source.media_type", f"Input should be {' or '.join(sorted(permitted))}"
            )
        if not source.get("data"):
            yield RuleViolation(f"{at}.source.data", "Field required")


def _text(block: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    text = block.get("text")
    if not isinstance(text, str) or not text:
        yield RuleViolation(at, "text content blocks must be non-empty")
    elif not text.strip():
        yield RuleViolation(at, "text content blocks must contain non-whitespace text")


def _signature(block: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    """Check a signature of the scripted server. A signature of a recording is not its own, and passes."""
    signature = str(block.get("signature") or "")
    if not signature:
        yield RuleViolation(f"{at}.signature", "Field required")
    elif signature.startswith("sig_") and signature != sign(str(block.get("thinking"))):
        yield RuleViolation(at, "Invalid `signature` in `thinking` block")


def _ending(message: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    """Check an answer that the vendor is to continue."""
    if message.get("role") != "assistant":
        return
    model = body.get("model")
    old = _matches(model, (*BUDGET_MODELS, "claude-3*"))
    if _matches(model, ("claude-*",)) and not old:
        yield RuleViolation(
            "messages",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    if (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        yield RuleViolation("messages", "prefill is not supported when thinking is enabled")
    blocks = _blocks(message)
    if blocks and str(blocks[-1].get("text", "")) != str(blocks[-1].get("text", "")).rstrip():
        yield RuleViolation("messages", "final assistant content cannot end with trailing whitespace")


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _matches(model: Any, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(str(model), pattern) for pattern in patterns)
