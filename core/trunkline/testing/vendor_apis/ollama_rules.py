"""The rules by which Ollama refuses requests to ``POST /api/chat``, as far as they concern their form.

The server decodes a request into types and refuses a value of another type. It knows no rules of transcripts: the
templates of models have them, so the rules of the most demanding templates are here too: roles that alternate, one
system message at the beginning, and results that name their tool. Pure functions.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trunkline.testing.vendor_apis.vendor_api import RuleViolation

ROLES = frozenset({"system", "user", "assistant", "tool"})
THINK = ("high", "medium", "low", "max")
DURATION = re.compile(r"-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")

FLOATS = frozenset({
    "temperature", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
})  # fmt: skip
INTEGERS = frozenset({
    "num_keep", "seed", "num_predict", "top_k", "repeat_last_n", "num_ctx", "num_batch", "num_gpu", "main_gpu",
    "num_thread",
})  # fmt: skip
BOOLEANS = frozenset({"use_mmap"})


def find_violations(path: str, body: Any) -> tuple[RuleViolation, ...]:
    """Return the rules that a request to this path violates. Only ``/api/chat`` has rules."""
    if not isinstance(body, dict) or not path.endswith("/api/chat"):
        return ()
    return (*_fields(body), *_messages(body.get("messages")), *_tools(body.get("tools", [])))


def _fields(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield RuleViolation("model", "is required")
    for name in ("stream", "truncate", "shift"):
        if not isinstance(body.get(name, True), bool):
            yield RuleViolation(name, "not a boolean")
    think = body.get("think", True)
    if not isinstance(think, bool) and think not in THINK:
        yield RuleViolation("think", f'{think!r} is not "high", "medium", "low", "max", true or false')
    if not (body.get("format", "json") == "json" or isinstance(body["format"], dict)):
        yield RuleViolation("format", "neither json nor a schema")
    kept = body.get("keep_alive", 0)
    if isinstance(kept, bool) or not (isinstance(kept, int | float) or DURATION.fullmatch(str(kept))):
        yield RuleViolation("keep_alive", f"{kept!r} is no duration")
    yield from _options(body.get("options", {}))


def _options(options: Any) -> Iterator[RuleViolation]:
    if not isinstance(options, dict):
        yield RuleViolation("options", "not an object")
        return
    for name, value in options.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in FLOATS and not number:
            yield RuleViolation(f"options.{name}", "must be of type float32")
        elif name in INTEGERS and not (number and int(value) == value):
            yield RuleViolation(f"options.{name}", "must be of type integer")
        elif name in BOOLEANS and not isinstance(value, bool):
            yield RuleViolation(f"options.{name}", "must be of type boolean")
        elif name == "stop" and not _are_texts(value):
            yield RuleViolation("options.stop", "must be of an array of strings")
        elif name not in (*FLOATS, *INTEGERS, *BOOLEANS, "stop"):
            yield RuleViolation(f"options.{name}", "invalid option provided")


# Messages ----------------------------------------------------------------------------------------------------


def _messages(messages: Any) -> Iterator[RuleViolation]:
    if not isinstance(messages, list) or not messages:
        yield RuleViolation("messages", "there is no message, so the model is only loaded")
        return
    before = ""
    answered = True
    for number, message in enumerate(messages):
        at, role = f"messages[{number}]", message.get("role")
        if role not in ROLES:
            yield RuleViolation(f"{at}.role", f"no role {role!r}")
        if role == "system" and number:
            yield RuleViolation(f"{at}.role", "a system message after the beginning")
        if role == before and role != "tool" and answered:
            yield RuleViolation(f"{at}.role", f"a second message of the role {role} in a row")
        answered = not message.get("tool_calls")
        before = role
        yield from _message(message, role, at)


def _message(message: Mapping[str, Any], role: str, at: str) -> Iterator[RuleViolation]:
    if not isinstance(message.get("content", ""), str):
        yield RuleViolation(f"{at}.content", "not a string")
    if not isinstance(message.get("thinking", ""), str) or ("thinking" in message and role != "assistant"):
        yield RuleViolation(f"{at}.thinking", "not the text of an assistant message")
    if role == "tool" and not (isinstance(message.get("tool_name"), str) and message["tool_name"]):
        yield RuleViolation(f"{at}.tool_name", "the result does not name its tool")
    if role == "assistant" and not any(message.get(name) for name in ("content", "tool_calls", "thinking")):
        yield RuleViolation(f"{at}.content", "an assistant message that says nothing")
    for number, image in enumerate(message.get("images", ())):
        if not _is_base64(image):
            yield RuleViolation(f"{at}.images[{number}]", "not base64")
    for number, call in enumerate(message.get("tool_calls", ())):
        function = call.get("function") or {}
        if not isinstance(function.get("name"), str) or not function["name"]:
            yield RuleViolation(f"{at}.tool_calls[{number}].function.name", "is required")
        if not isinstance(function.get("arguments"), dict):
            yield RuleViolation(f"{at}.tool_calls[{number}].function.arguments", "not an object")


def _is_base64(image: Any) -> bool:
    try:
        return isinstance(image, str) and bool(base64.b64decode(image, validate=True))
    except binascii.Error:
        return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


# Tools -------------------------------------------------------------------------------------------------------


def _tools(tools: Sequence[Any]) -> Iterator[RuleViolation]:
    for number, tool in enumerate(tools):
        at, function = f"tools[{number}].function", tool.get("function") or {}
        if tool.get("type") != "function":
            yield RuleViolation(f"tools[{number}].type", "not function")
        if not isinstance(function.get("name"), str) or not function["name"]:
            yield RuleViolation(f"{at}.name", "is required")
        parameters = function.get("parameters")
        if not isinstance(parameters, dict) or not isinstance(parameters.get("properties"), dict):
            yield RuleViolation(f"{at}.parameters", "not a schema of an object with properties")
            continue
        if not _are_texts(parameters.get("required", [])):
            yield RuleViolation(f"{at}.parameters.required", "not a list of names")
        for name, schema in parameters["properties"].items():
            if not isinstance(schema, dict):
                yield RuleViolation(f"{at}.parameters.properties.{name}", "not an object")
