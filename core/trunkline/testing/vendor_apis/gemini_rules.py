"""The rules by which the Gemini API refuses requests, as far as they concern transcripts, tools and thinking.

The rules follow the vendor's reference and the requests that its API answers with 400. The scripted servers check
every request, so every request of a test is one that the vendor accepts. Pure functions.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trunkline.testing.vendor_apis.gemini_content import model_of, sign
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation

FIELDS = frozenset(
    {
        "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
        "cachedContent", "serviceTier", "store", "continuationToken", "labels",
    }
)  # fmt: skip
CONFIG_FIELDS = frozenset(
    {
        "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities",
        "candidateCount", "maxOutputTokens", "temperature", "topP", "topK", "seed", "presencePenalty",
        "frequencyPenalty", "responseLogprobs", "logprobs", "enableEnhancedCivicAnswers", "speechConfig",
        "thinkingConfig", "imageConfig", "mediaResolution",
    }
)  # fmt: skip
DATA_FIELDS = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
)  # fmt: skip

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
MEDIA_TYPES = frozenset(
    {
        "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "text/plain",
        "audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/m4a",
    }
)  # fmt: skip

SKIP_SIGNATURES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""The signatures that the vendor documents for calls that another model made."""

UNSIGNED = ("gemini-1.*", "gemini-2.*", "gemma-*")
"""The models whose function calls need no signature."""

BUDGETS = {
    "gemini-2.5-pro*": (128, 32_768),
    "gemini-2.5-flash-lite*": (512, 24_576),
    "gemini-2.5-*": (1, 24_576),
}
"""The least and the largest budget of thinking; the models take 0 (all but Pro) and -1 as well."""

NO_THINKING = ("gemini-1.*", "gemini-2.0*", "gemma-*", "gemini-2.5-flash-image*")
LEVELS = {
    "gemini-3-pro*": ("low", "high"),
    "gemini-3.1-pro*": ("low", "medium", "high"),
    "gemini-3.[78]-flash": ("low", "medium", "high"),
    "gemini-4*": ("low", "medium", "high"),
    "*": ("minimal", "low", "medium", "high"),
}


def find_violations(request: RecordedRequest) -> tuple[RuleViolation, ...]:
    """Return the rules that a request violates."""
    body, model = request.body, model_of(request.path)
    return (
        *_head(request),
        *_config(body, model),
        *_tools(body),
        *_contents(body.get("contents"), model),
    )


def _head(request: RecordedRequest) -> Iterator[RuleViolation]:
    if not request.headers.get("x-goog-api-key"):
        yield RuleViolation("x-goog-api-key", "header is required")
    if request.path.endswith(":streamGenerateContent") and "alt=sse" not in request.query:
        yield RuleViolation("alt", "a stream of events needs alt=sse")
    for name in sorted(set(request.body) - FIELDS):
        yield RuleViolation(name, f"Unknown name {name!r}: Cannot find field.")
    instruction = request.body.get("systemInstruction")
    if instruction is not None:
        parts = instruction.get("parts") or ()
        if not parts or not all(part.get("text") for part in parts):
            yield RuleViolation("systemInstruction.parts", "must not be empty")


# Configuration -------------------------------------------------------------------------------------------------


def _config(body: Mapping[str, Any], model: str) -> Iterator[RuleViolation]:
    config = body.get("generationConfig") or {}
    for name in sorted(set(config) - CONFIG_FIELDS):
        yield RuleViolation(f"generationConfig.{name}", f"Unknown name {name!r}: Cannot find field.")
    schemas = {"responseSchema", "responseJsonSchema"} & set(config)
    as_json = config.get("responseMimeType") == "application/json"
    if schemas and not as_json:
        yield RuleViolation("generationConfig.responseMimeType", "must be application/json with a schema")
    if len(schemas) > 1:
        yield RuleViolation("generationConfig.responseSchema", "excludes responseJsonSchema")
    calling = ((body.get("toolConfig") or {}).get("functionCallingConfig") or {}).get("mode")
    if as_json and body.get("tools") and calling != "NONE" and _matches(model, UNSIGNED):
        yield RuleViolation(
            "generationConfig.responseMimeType",
            "Function calling with a response mime type: 'application/json' is unsupported",
        )
    penalties = {"presencePenalty", "frequencyPenalty"} & set(config)
    if penalties and not _matches(model, UNSIGNED):
        yield RuleViolation(
            "generationConfig", f"{', '.join(sorted(penalties))} is not supported by this model"
        )
    yield from _thinking(config.get("thinkingConfig"), model)


def _thinking(thinking: Any, model: str) -> Iterator[RuleViolation]:
    at = "generationConfig.thinkingConfig"
    if thinking is None:
        return
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if _matches(model, NO_THINKING):
        yield RuleViolation(at, "Thinking is not enabled for this model")
    if level is not None and budget is not None:
        yield RuleViolation(at, "You can only set one of thinking budget and thinking level.")
    if level is not None:
        levels = next(found for pattern, found in LEVELS.items() if fnmatchcase(model, pattern))
        if _matches(model, UNSIGNED) or str(level).lower() not in levels:
            yield RuleViolation(
                f"{at}.thinkingLevel", f"Thinking level {level} is not supported for this model"
            )
    if budget is not None:
        yield from _budget(budget, thinking, model, at)


def _budget(budget: Any, thinking: Mapping[str, Any], model: str, at: str) -> Iterator[RuleViolation]:
    limits = next((found for pattern, found in BUDGETS.items() if fnmatchcase(model, pattern)), None)
    stops = budget == 0 and not fnmatchcase(model, "gemini-2.5-pro*")
    if limits and budget != -1 and not stops and not limits[0] <= budget <= limits[1]:
        yield RuleViolation(f"{at}.thinkingBudget", f"must be within {limits[0]} to {limits[1]}")
    if budget == 0 and thinking.get("includeThoughts"):
        yield RuleViolation(f"{at}.includeThoughts", "is only enabled when thinking is enabled")


# Tools ---------------------------------------------------------------------------------------------------------


def _tools(body: Mapping[str, Any]) -> Iterator[RuleViolation]:
    names: list[str] = []
    for number, tool in enumerate(body.get("tools") or ()):
        for place, declared in enumerate(tool.get("functionDeclarations") or ()):
            at = f"tools[{number}].function_declarations[{place}]"
            yield from _declaration(declared, at, names)
            names.append(str(declared.get("name")))
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    mode, allowed = calling.get("mode", "AUTO"), calling.get("allowedFunctionNames") or ()
    at = "toolConfig.functionCallingConfig"
    if mode not in ("AUTO", "ANY", "NONE", "VALIDATED"):
        yield RuleViolation(f"{at}.mode", f"no mode {mode!r}")
    if mode == "ANY" and not names:
        yield RuleViolation(f"{at}.mode", "Function calling config is set without function_declarations.")
    if allowed and mode not in ("ANY", "VALIDATED"):
        yield RuleViolation(f"{at}.allowedFunctionNames", "should only be set when the mode is ANY")
    for name in allowed:
        if name not in names:
            yield RuleViolation(f"{at}.allowedFunctionNames", f"{name!r} is not a declared function")


def _declaration(declared: Mapping[str, Any], at: str, earlier: Sequence[str]) -> Iterator[RuleViolation]:
    name = str(declared.get("name"))
    if not NAME.fullmatch(name):
        yield RuleViolation(f"{at}.name", f"Invalid function name {name!r}")
    if name in earlier:
        yield RuleViolation(f"{at}.name", f"Duplicate function declaration found: {name}")
    if "parameters" in declared and "parametersJsonSchema" in declared:
        yield RuleViolation(f"{at}.parameters", "excludes parametersJsonSchema")
    schema = declared.get("parametersJsonSchema")
    if schema is not None and schema.get("type") != "object":
        yield RuleViolation(f"{at}.parametersJsonSchema", "schema must describe an object")


# Contents ------------------------------------------------------------------------------------------------------


def _contents(contents: Any, model: str) -> Iterator[RuleViolation]:
    if not isinstance(contents, list) or not contents:
        yield RuleViolation("contents", "contents is not specified")
        return
    if contents[0].get("role") == "model":
        yield RuleViolation(
            "contents[0].role", "Please ensure that multiturn requests begin with a user role."
        )
    if contents[-1].get("role") == "model":
        yield RuleViolation(f"contents[{len(contents) - 1}].role", "the last content must have the user role")
    joined = list(_joined(contents))
    before: Mapping[str, Any] = {}
    for number, content in joined:
        at = f"contents[{number}]"
        if content.get("role") not in ("user", "model"):
            yield RuleViolation(f"{at}.role", "Please use a valid role: user, model.")
        if not content.get("parts"):
            yield RuleViolation(f"{at}.parts", "contents.parts must not be empty.")
        for place, part in enumerate(content.get("parts") or ()):
            yield from _part(part, content, f"{at}.parts[{place}]")
        yield from _turn(before, content, at)
        before = content
    yield from _turn(before, {}, f"contents[{len(contents)}]")
    if not _matches(model, UNSIGNED):
        yield from _missing_signatures(joined)


def _joined(contents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the contents with their numbers. Contents of the model in a row are one, as the pieces of a stream are."""
    number = 0
    while number < len(contents):
        content, begin = contents[number], number
        number += 1
        while (
            content.get("role") == "model"
            and number < len(contents)
            and contents[number].get("role") == "model"
        ):
            content = {**content, "parts": [*content.get("parts", ()), *contents[number].get("parts", ())]}
            number += 1
        yield begin, content


def _part(part: Mapping[str, Any], content: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    data = [name for name in DATA_FIELDS if name in part]
    if len(data) != 1:
        yield RuleViolation(f"{at}.data", "required oneof field 'data' must have one initialized field")
        return
    if data == ["text"] and not part["text"] and "thoughtSignature" not in part:
        yield RuleViolation(f"{at}.text", "must not be empty")
    if data == ["inlineData"]:
        yield from _blob(part["inlineData"], f"{at}.inlineData")
    if data == ["functionCall"]:
        call = part["functionCall"]
        if content.get("role") != "model":
            yield RuleViolation(f"{at}.functionCall", "a function call belongs to the model")
        if not NAME.fullmatch(str(call.get("name"))) or not isinstance(call.get("args", {}), dict):
            yield RuleViolation(f"{at}.functionCall", "Name and args of a function call are invalid.")
    if data == ["functionResponse"]:
        response = part["functionResponse"]
        if not response.get("name"):
            yield RuleViolation(f"{at}.functionResponse.name", "Name cannot be empty.")
        if not isinstance(response.get("response"), dict):
            yield RuleViolation(f"{at}.functionResponse.response", "must be an object")
    yield from _signature(part, content, at)


def _blob(blob: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    if blob.get("mimeType") not in MEDIA_TYPES:
        yield RuleViolation(f"{at}.mimeType", f"Unsupported MIME type: {blob.get('mimeType')}")
    try:
        empty = not base64.b64decode(str(blob.get("data")), validate=True)
    except binascii.Error:
        empty = True
    if empty:
        yield RuleViolation(f"{at}.data", "Base64 decoding failed")


def _signature(part: Mapping[str, Any], content: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    """Check that a signature is on the part to which the vendor gave it."""
    given = part.get("thoughtSignature")
    if given is None or given in SKIP_SIGNATURES:
        return
    if "functionCall" in part:
        expected = sign("call", part["functionCall"].get("name"), part["functionCall"].get("args"))
    else:
        parts = content["parts"]
        texts = (one.get("text", "") for one in parts[: parts.index(part)] if not one.get("thought"))
        expected = sign("text", part.get("text"), "".join(texts) + str(part.get("text")))
    if given != expected:
        yield RuleViolation(f"{at}.thoughtSignature", "Corrupted thought signature.")


def _turn(before: Mapping[str, Any], content: Mapping[str, Any], at: str) -> Iterator[RuleViolation]:
    """Check that results follow their calls directly and match them in number, name and id."""
    calls = [part["functionCall"] for part in before.get("parts") or () if "functionCall" in part]
    parts = content.get("parts") or ()
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if len(calls) != len(responses):
        yield RuleViolation(
            at,
            "Please ensure that the number of function response parts is equal to the number of function call "
            f"parts of the function call turn: {len(responses)} for {len(calls)}",
        )
        return
    for call, response in zip(calls, responses, strict=True):
        if call.get("name") != response.get("name"):
            yield RuleViolation(
                at, f"the response of {response.get('name')} answers a call of {call.get('name')}"
            )
        if call.get("id") and response.get("id") and call["id"] != response["id"]:
            yield RuleViolation(at, f"the response {response['id']} answers the call {call['id']}")
    model_before = before.get("role") == "model"
    if model_before and content.get("role") == "model" and any("functionCall" in part for part in parts):
        yield RuleViolation(
            at,
            "Please ensure that function call turn comes immediately after a user turn or a response turn.",
        )


def _missing_signatures(contents: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[RuleViolation]:
    """Check the first call of each answer of the running turn, which begins with the user's last words."""
    running: list[tuple[int, Mapping[str, Any]]] = []
    for number, content in contents:
        parts = content.get("parts") or ()
        if content.get("role") == "user" and any("functionResponse" not in part for part in parts):
            running.clear()
        running.append((number, content))
    for number, content in running:
        calls = [part for part in content.get("parts") or () if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            yield RuleViolation(
                f"contents[{number}]",
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly: {calls[0]['functionCall'].get('name')}",
            )


def _matches(model: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in patterns)
