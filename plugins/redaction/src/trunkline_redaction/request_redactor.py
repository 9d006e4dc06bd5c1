"""Redacts requests: finds what must not leave, in every text of a request, and puts placeholders there. No I/O."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec.structs import replace

from trunkline import Message
from trunkline.api.model import ModelRequest, ReasoningBlock
from trunkline.api.text import Redactor
from trunkline_redaction.placeholders import Placeholders
from trunkline_redaction.settings import SECRET, RedactionSettings
from trunkline_redaction.split_secrets import SplitSecrets

if TYPE_CHECKING:
    import re2

log = logging.getLogger(__name__)

Clean = Callable[[str], str]

CACHED_TEXTS = 2_048
"""The number of texts whose secrets are remembered: most texts of a request were in the request before. Each is
redacted twice, for its call and for the request."""

LONG_TEXT = 100_000
"""Characters from which a text is long, such as an attached file."""

CACHED_LONG_TEXTS = 16

MIN_EVERYWHERE = 8
"""The length from which a secret is replaced wherever it stands, and not only beside its name."""

FIXED_WORDS = frozenset(
    {
        *("additionalItems", "additionalProperties", "contentEncoding", "contentMediaType", "contentSchema"),
        *(
            "definitions",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "deprecated",
            "description",
        ),
        *("detailed", "disabled", "discriminator", "examples", "exclusiveMaximum", "exclusiveMinimum"),
        *(
            "hostname",
            "idn-email",
            "idn-hostname",
            "iri-reference",
            "json-pointer",
            "maxContains",
            "maxItems",
        ),
        *(
            "maxLength",
            "maxProperties",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
            "multipleOf",
        ),
        *(
            "nullable",
            "password",
            "patternProperties",
            "prefixItems",
            "priority",
            "properties",
            "propertyNames",
        ),
        *("readOnly", "relative-json-pointer", "required", "standard", "unevaluatedItems"),
        *("unevaluatedProperties", "uniqueItems", "uri-reference", "uri-template", "writeOnly", "date-time"),
        *("$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary"),
    }
)
"""Words of JSON Schema and of parameters that a vendor requires as they are. A text that says ``password: properties``
must not break every tool of its conversation.
"""

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
"""Escaped characters of JSON."""

MAX_TEXT_WORD = 64
"""Characters of a word in a text at most. A longer one in a block of reasoning is a signature or encrypted."""


class RequestRedactor:
    """Redacts requests with one key."""

    def __init__(self, settings: RedactionSettings, key: bytes) -> None:
        import re2

        self._key = key
        self._redactor = Redactor() if settings.secrets else None
        self._patterns: list[tuple[str, re2._Regexp]] = [
            (label.upper(), re2.compile(pattern)) for label, pattern in settings.patterns.items()
        ]
        self._scan_short = lru_cache(CACHED_TEXTS)(self._scan_text)
        self._scan_long = lru_cache(CACHED_LONG_TEXTS)(self._scan_text)

    def redact(self, request: ModelRequest) -> tuple[ModelRequest, Placeholders]:
        """Return the request with placeholders, and what they stand for."""
        found = self._placeholders()
        for text in _texts(request):
            found.update(self._scan(text)[1])
        for call in (call for message in request.messages for call in message.tool_calls):
            self._scan_arguments(call.arguments, found)
        parts = SplitSecrets()
        parts.find_between(request.messages, self._scan)
        parts.add_values(value for _, value in found.items())
        for placeholder, value in found.items():
            for spelling in _spellings(value):
                found.add_spelling(placeholder, spelling)
        everywhere = found.pattern(MIN_EVERYWHERE)

        def clean_part(text: str) -> str:
            return everywhere.sub(lambda one: found.placeholder_of(one[0]) or one[0], self._scan(text)[0])

        def clean(text: str) -> str:
            return found.placeholder_of(text) or clean_part(
                parts.replace(text, partial(found.replace, SECRET))
            )

        def clean_schema(text: str) -> str:
            return text if text in FIXED_WORDS else clean_part(text)

        def clean_name(
            text: str,
        ) -> str:  # no value beside a name elsewhere: that would rename tools at random
            name, pairs = self._scan(text)
            found.update(pairs)
            return name

        return _cleaned(request, clean, clean_schema, clean_name), found

    def _placeholders(self) -> Placeholders:
        return Placeholders(self._key, (SECRET, *(label for label, _ in self._patterns)))

    def _scan_arguments(self, arguments: dict[str, Any], found: Placeholders) -> None:
        """Find values of arguments that stand beside a name. In JSON some characters are escaped."""
        for placeholder, value in self._scan(json.dumps(arguments, ensure_ascii=False, default=str))[1]:
            label = placeholder.rpartition("_")[0]
            try:
                found.replace(label, json.loads(f'"{value}"'))
            except ValueError:
                found.add(placeholder, value)  # it goes beyond one text of the arguments

    def _scan(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Do the same as ``_scan_text``, from memory if the text was there before."""
        return self._scan_short(text) if len(text) < LONG_TEXT else self._scan_long(text)

    def _scan_text(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return a text with placeholders, and what they stand for. Escaped characters are written out if only that
        shows what must not leave.
        """
        plain = _ESCAPES.sub(_unescaped, text)
        scanned = self._scan_plain(text)
        if plain == text:
            return scanned
        scanned_plain = self._scan_plain(plain)
        return scanned if scanned[1] == scanned_plain[1] else scanned_plain

    def _scan_plain(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        found = self._placeholders()
        for label, pattern in self._patterns:
            text = pattern.sub(partial(_substitute, found, label), text)
        if self._redactor is not None:
            text = self._redactor.replace(text, partial(found.replace, SECRET))
        return text, tuple(found.items())


def _substitute(found: Placeholders, label: str, match: "re2._Match") -> str:
    return found.replace(label, str(match.group()))


def _texts(request: ModelRequest) -> Iterator[str]:
    """Yield every text of a request that a vendor receives, except reasoning."""
    for message in request.messages:
        yield message.content
        yield from (document.name for document in message.documents)
        for call in message.tool_calls:
            yield from _leaves(call.arguments)
    for tool in request.tools:
        yield from (tool.description, *_leaves(tool.parameters))
    if request.response_format is not None:
        yield from (request.response_format.description, *_leaves(request.response_format.schema))
    yield from _leaves(request.parameters)
    if request.partial:
        yield request.partial


def _leaves(value: Any) -> Iterator[str]:
    """Yield each text and each key of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (str(key), *_leaves(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)


def _spellings(value: str) -> Iterator[str]:
    """Yield a text as it is written within JSON, with and without letters of all languages, and within an address."""
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="", errors="replace")


def _unescaped(escapes: re.Match[str]) -> str:
    """Return escaped letters written out; as they are if one of them has a meaning in JSON, or is half of a letter."""
    text = str(json.loads(f'"{escapes[0]}"'))
    return text if all("\x80" <= one < "\ud800" or one > "\udfff" for one in text) else escapes[0]


def _cleaned(request: ModelRequest, clean: Clean, clean_schema: Clean, clean_name: Clean) -> ModelRequest:
    format, choice = request.response_format, request.tool_choice
    return replace(
        request,
        messages=tuple(_cleaned_message(message, clean, clean_name) for message in request.messages),
        tool_choice=replace(choice, tools=tuple(map(clean_name, choice.tools))),
        tools=tuple(
            replace(
                tool,
                name=clean_name(tool.name),
                description=clean(tool.description),
                parameters=_mapped(tool.parameters, clean_schema),
            )
            for tool in request.tools
        ),
        response_format=format
        and replace(
            format, description=clean(format.description), schema=_mapped(format.schema, clean_schema)
        ),
        parameters={name: _mapped(value, clean_schema) for name, value in request.parameters.items()},
        partial=clean(request.partial),
    )


def _cleaned_message(message: Message, clean: Clean, clean_name: Clean) -> Message:
    calls = tuple(
        replace(
            call, id=clean_name(call.id), name=clean_name(call.name), arguments=_mapped(call.arguments, clean)
        )
        for call in message.tool_calls
    )
    reasoning = tuple(block for block in message.reasoning if _is_clean(block, clean))
    documents = tuple(replace(document, name=clean(document.name)) for document in message.documents)
    return replace(
        message,
        content=clean(message.content),
        tool_calls=calls,
        tool_call_id=message.tool_call_id and clean_name(message.tool_call_id),
        name=message.name and clean_name(message.name),
        reasoning=reasoning,
        documents=documents,
    )


def _is_clean(block: ReasoningBlock, clean: Clean) -> bool:
    """Report whether a block of reasoning may be sent. A signed block must not be changed, so one that the model wrote
    before redaction was switched on is left out if it has a secret.
    """
    texts = [text for text in _leaves(block.data) if any(len(word) <= MAX_TEXT_WORD for word in text.split())]
    if all(clean(text) == text for text in texts):
        return True
    log.warning("a block of reasoning is not sent again, because it has a text that must not leave")
    return False


def _mapped(value: Any, clean: Clean) -> Any:
    """Return a JSON value with each text and each key cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _mapped(one, clean) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(one, clean) for one in value]
    return value
