"""The rules by which OpenAI refuses requests to Chat Completions and Responses, as far as they concern transcripts.

The rules follow the vendor's reference and the requests that its API answers with 400. The scripted servers check
every request, so every request of a test is one that the vendor accepts. Pure functions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
        return (*_chat(body.get("messages")), *_tools(body, "function"))
    if path.endswith("/responses"):
        return (*_responses(body.get("input")), *_tools(body, None))
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


def _content(content: Any, at: str) -> Iterator[RuleViolation]:
    if not isinstance(content, str) and not (isinstance(content, list) and content):
        yield RuleViolation(f"{at}.content", "neither a text nor parts")


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


def _tools(body: Mapping[str, Any], within: str | None) -> Iterator[RuleViolation]:
    tools: Sequence[Any] = body.get("tools") or ()
    names = [str((tool.get(within) or {} if within else tool).get("name")) for tool in tools]
    if "tools" in body and not tools:
        yield RuleViolation("tools", "an empty list")
    for number, name in enumerate(names):
        if not NAME.fullmatch(name):
            yield RuleViolation(f"tools[{number}].name", f"{name!r} is no name of a function")
        if name in names[:number]:
            yield RuleViolation(f"tools[{number}].name", f"{name!r} is there twice")
