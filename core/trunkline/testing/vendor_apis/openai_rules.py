"""The rules by which OpenAI refuses requests to Chat Completions and Responses, as far as they concern transcripts.

The rules follow the vendor's reference and the requests that its API answers with 400. The scripted servers check
every request, so every request of a test is one that the vendor accepts. Pure functions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trunkline.testing.vendor_apis.openai_reasoning_items import (
    ENCRYPTED,
    PLAIN_MODEL,
    REASONING_MODEL,
    THINKING_MODEL,
    is_signed,
    is_unchanged,
)
from trunkline.testing.vendor_apis.vendor_api import RuleViolation

CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
INPUT_ROLES = frozenset({"system", "developer", "user", "assistant"})
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CHAT_ID, INPUT_ID = 40, 64
"""Largest number of characters of a call's id."""


def find_violations(path: str, body: Any) -> tuple[RuleViolation, ...]:
    """Return the rules that a request to this path violates. Only the vendor's two paths have rules."""
    if not isinstance(body, dict):
        return ()
    if path.endswith("/chat/completions"):
        return (*_chat(body.get("messages")), *_chat_reasoning(body), *_both(body, "function"))
    if path.endswith("/responses"):
        return (*_responses(body.get("input")), *_items_of_reasoning(body), *_both(body, None))
    return ()


# Chat Completions --------------------------------------------------------------------------------------------


def _chat(messages: Any) -> Iterator[RuleViolation]:
    if not isinstance(messages, list) or not messages:
        yield RuleViolation("messages", "there is no message")
        return
    seen: set[str] = set()
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        role = message.get("role")
        if role == "tool":
            yield from _tool_message(message, at, open_calls)
            continue
        yield from _unanswered(open_calls, at)
        if role not in CHAT_ROLES:
            yield RuleViolation(f"{at}.role", f"no role {role!r}")
        elif role == "assistant":
            yield from _assistant(message, at, seen)
            open_calls = {str(call.get("id")) for call in message.get("tool_calls") or ()}
        else:
            yield from _content(message.get("content"), at)
    yield from _unanswered(open_calls, f"messages[{len(messages)}]")


def _unanswered(open_calls: set[str], at: str) -> Iterator[RuleViolation]:
    """Check that an assistant message with calls is followed directly by a result for each call."""
    if open_calls:
        yield RuleViolation(at, f"before it, these calls have no result: {', '.join(sorted(open_calls))}")
        open_calls.clear()


def _tool_message(message: Mapping[str, Any], at: str, open_calls: set[str]) -> Iterator[RuleViolation]:
    id = message.get("tool_call_id")
    if id not in open_calls:
        yield RuleViolation(
            f"{at}.tool_call_id", f"{id!r} answers no call of the assistant message before it"
        )
    open_calls.discard(str(id))
    yield from _content(message.get("content"), at)


def _assistant(message: Mapping[str, Any], at: str, seen: set[str]) -> Iterator[RuleViolation]:
    calls = message.get("tool_calls")
    if "tool_calls" in message and not calls:
        yield RuleViolation(f"{at}.tool_calls", "an empty list")
    if not calls and not message.get("content"):
        yield RuleViolation(f"{at}.content", "an assistant message has content or calls")
    for number, call in enumerate(calls or ()):
        place = f"{at}.tool_calls[{number}]"
        function = call.get("function") or {}
        if call.get("type") != "function":
            yield RuleViolation(f"{place}.type", "not function")
        yield from _call(call.get("id"), function, place, seen, CHAT_ID)


def _chat_reasoning(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    """Check the reasoning that assistant messages give back, by the rules of the model's vendor."""
    model = str(body.get("model"))
    thinks = (body.get("thinking") or {}).get("type") != "disabled"
    messages: list[Any] = body.get("messages") or []
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        if message.get("role") != "assistant":
            continue
        given = "reasoning_content" in message
        if THINKING_MODEL.match(model):
            if thinks and message.get("tool_calls") and not given:
                yield RuleViolation(
                    f"{at}.reasoning_content", "in the thinking mode it must be passed back to the API"
                )
        elif given:
            yield RuleViolation(f"{at}.reasoning_content", "unsupported")
        for detail in message.get("reasoning_details") or ():
            if "/" not in model or (detail.get("type") == "reasoning.text" and not is_signed(detail)):
                yield RuleViolation(f"{at}.reasoning_details", "not as they were sent")


def _content(content: Any, at: str) -> Iterator[RuleViolation]:
    if not isinstance(content, str) and not (isinstance(content, list) and content):
        yield RuleViolation(f"{at}.content", "neither a text nor parts")
    parts: list[Any] = content if isinstance(content, list) else []
    for number, part in enumerate(parts):
        if isinstance(part, dict):
            yield from _part(part, f"{at}.content[{number}]")


def _part(part: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    """Check a document that is in the request: its content is an address that holds it, and it has a name."""
    file = {"input_file": part, "file": part.get("file")}.get(str(part.get("type")))
    if file is None or "file_id" in file or "file_url" in file:
        return
    if not str(file.get("file_data")).startswith("data:"):
        yield RuleViolation(f"{at}.file_data", "no data URL")
    if not file.get("filename"):
        yield RuleViolation(f"{at}.filename", "missing")


# Responses ---------------------------------------------------------------------------------------------------


def _responses(items: Any) -> Iterator[RuleViolation]:
    if isinstance(items, str) and items:
        return
    if not isinstance(items, list) or not items:
        yield RuleViolation("input", "there is no input")
        return
    seen: set[str] = set()
    open_calls: set[str] = set()
    answering = False
    for number, item in enumerate(items):
        at, kind = f"input[{number}]", item.get("type", "message")
        if kind == "function_call_output":
            answering = True
            yield from _output(item, at, open_calls)
            continue
        if answering or kind != "function_call":
            yield from _unanswered(open_calls, at)
            answering = False
        if kind == "function_call":
            yield from _call(item.get("call_id"), item, at, seen, INPUT_ID)
            open_calls.add(str(item.get("call_id")))
        elif kind == "message":
            yield from _input_message(item, at)
    yield from _unanswered(open_calls, f"input[{len(items)}]")


def _items_of_reasoning(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    """Check that reasoning items are unchanged and that the item of their answer follows."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    following: Sequence[Any] = [*items[1:], {}]
    for number, (item, after) in enumerate(zip(items, following, strict=False)):
        if item.get("type") != "reasoning":
            continue
        at = f"input[{number}]"
        answers = after.get("type") in ("reasoning", "function_call") or after.get("role") == "assistant"
        if not answers:
            yield RuleViolation(at, "of type reasoning was provided without its required following item")
        if not is_unchanged(item):
            yield RuleViolation(f"{at}.encrypted_content", "could not be verified")
    if ENCRYPTED in (body.get("include") or ()) and PLAIN_MODEL.match(str(body.get("model"))):
        yield RuleViolation("include", "encrypted content is not supported with this model")


def _output(item: Mapping[str, Any], at: str, open_calls: set[str]) -> Iterator[RuleViolation]:
    id = item.get("call_id")
    if id not in open_calls:
        yield RuleViolation(f"{at}.call_id", f"no call {id!r} is without an output here")
    open_calls.discard(str(id))
    if not isinstance(item.get("output"), str | list):
        yield RuleViolation(f"{at}.output", "neither a text nor parts")


def _input_message(item: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    if item.get("role") not in INPUT_ROLES:
        yield RuleViolation(f"{at}.role", f"no role {item.get('role')!r}")
    if item.get("role") == "assistant" and not item.get("content"):
        yield RuleViolation(f"{at}.content", "an assistant message has content")
    else:
        yield from _content(item.get("content"), at)


# Both formats ----------------------------------------------------------------------------------------------


def _call(
    id: Any, function: Mapping[str, Any], at: str, seen: set[str], longest: int
) -> Iterator[RuleViolation]:
    if not isinstance(id, str) or not 0 < len(id) <= longest:
        yield RuleViolation(f"{at}.id", f"{id!r} has not 1 to {longest} characters")
    if id in seen:
        yield RuleViolation(f"{at}.id", f"{id!r} is the id of an earlier call")
    seen.add(str(id))
    if not NAME.fullmatch(str(function.get("name"))):
        yield RuleViolation(f"{at}.name", f"{function.get('name')!r} is no name of a function")
    if not _is_object(function.get("arguments")):
        yield RuleViolation(f"{at}.arguments", "not the text of a JSON object")


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text, parse_constant=_refused), dict)
    except (ValueError, RecursionError):
        return False


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _both(body: Mapping[str, Any], within: str | None) -> Iterator[RuleViolation]:
    yield from _tools(body, within)
    yield from _tool_choice(body, within)
    yield from _format(body, within)
    effort = body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")
    if (
        body.get("temperature") is not None
        and REASONING_MODEL.match(str(body.get("model")))
        and effort != "none"
    ):
        yield RuleViolation("temperature", "unsupported parameter with this model")


def _function_names(body: Mapping[str, Any], within: str | None) -> list[str]:
    """Return the names of the offered functions. Hosted tools have none."""
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    return [str((tool.get(within) or {} if within else tool).get("name")) for tool in tools]


def _tools(body: Mapping[str, Any], within: str | None) -> Iterator[RuleViolation]:
    if "tools" in body and not body["tools"]:
        yield RuleViolation("tools", "an empty list")
    names = _function_names(body, within)
    for number, name in enumerate(names):
        if not NAME.fullmatch(name):
            yield RuleViolation(f"tools[{number}].name", f"{name!r} is no name of a function")
        if name in names[:number]:
            yield RuleViolation(f"tools[{number}].name", f"{name!r} is there twice")


def _tool_choice(body: Mapping[str, Any], within: str | None) -> Iterator[RuleViolation]:
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not body.get("tools"):
        yield RuleViolation("tool_choice", "only allowed when tools are specified")
    if isinstance(choice, str):
        if choice not in ("auto", "required", "none"):
            yield RuleViolation("tool_choice", f"no mode {choice!r}")
        return
    allowed = (choice.get("allowed_tools") or {}) if within else choice
    chosen = allowed.get("tools") or () if choice.get("type") == "allowed_tools" else [choice]
    if choice.get("type") == "allowed_tools" and allowed.get("mode") not in ("auto", "required"):
        yield RuleViolation("tool_choice.mode", f"no mode {allowed.get('mode')!r}")
    names = _function_names(body, within)
    for tool in chosen:
        if (
            tool.get("type") == "function"
            and (tool.get(within) or {} if within else tool).get("name") not in names
        ):
            yield RuleViolation("tool_choice", "names a tool that is not among the tools")


def _format(body: Mapping[str, Any], within: str | None) -> Iterator[RuleViolation]:
    """Check the form of the answer: ``response_format`` of Chat Completions, ``text.format`` of Responses."""
    at = "response_format" if within else "text.format"
    wanted = body.get("response_format") if within else (body.get("text") or {}).get("format")
    if wanted is None or wanted.get("type") == "text":
        return
    if wanted.get("type") == "json_object":
        if "json" not in json.dumps(body.get("messages") or body.get("input")).lower():
            yield RuleViolation(at, "the messages must contain the word json")
        return
    if wanted.get("type") != "json_schema":
        yield RuleViolation(f"{at}.type", f"no type {wanted.get('type')!r}")
        return
    described = (wanted.get("json_schema") or {}) if within else wanted
    if not NAME.fullmatch(str(described.get("name"))):
        yield RuleViolation(f"{at}.name", "no name of a schema")
    schema = described.get("schema")
    if not isinstance(schema, dict):
        yield RuleViolation(f"{at}.schema", "no schema")
    elif described.get("strict"):
        yield from _strict(schema, f"{at}.schema")


def _strict(schema: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    """Check what a strict schema must have: every property is required, and no other is permitted."""
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        if schema.get("additionalProperties") is not False:
            yield RuleViolation(at, "additionalProperties is required to be supplied and to be false")
        if set(schema.get("required") or ()) != set(properties or ()):
            yield RuleViolation(at, "required is required to include every key in properties")
    for name, inner in (properties or {}).items():
        if isinstance(inner, dict):
            yield from _strict(inner, f"{at}.properties.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _strict(schema["items"], f"{at}.items")
