"""The reason why a model did not answer, in one line for the person who asked.

The log has the whole error. This line goes to everyone who may see the turn, so it must not contain keys,
addresses, account ids, paths or tracebacks: an error text may quote data of other customers of the same
provider.
"""

import re

from trunkline._util.secrets.log_redactor import LogRedactor
from trunkline._util.text import printable, truncate_words
from trunkline.errors import ErrorCode, ModelError, ModelFault

MAX_LINE_CHARS = 300
"""Largest number of characters of the line."""

MAX_INPUT_CHARS = 2_000
"""Largest number of characters of an error's text that are examined."""

FAULT_TEXT: dict[ModelFault, str] = {
    "authentication": "the provider refused the credential",
    "rate_limited": "the provider takes no more requests now",
    "unavailable": "the provider cannot be reached or does not work",
    "timeout": "the provider did not answer in time",
    "bad_response": "the provider's answer cannot be read",
    "wrong_format": "the answer is not in the response format, also after one repair",
    "interrupted": "the answer broke off",
    "refused": "the provider refused the request",
    "over_budget": "a budget is used up",
}
"""The text of each fault for people."""

NOT_TAKEN = "the model does not take the request"
"""The text for people about a request that was not sent, because the model does not take a part of it."""

MAX_WORD_CHARS = 100
"""Largest length of a word that is shown: words of sentences are shorter, keys may be longer."""

_PATH_CONTINUATION = r"(?:\\? (?:[^\s/\\\"'`:]+\\? ){0,3}[^\s/\\\"'`:]*[/\\][^\s\"'`]*)*"
"""The continuation of a path whose folders have blanks in their names."""

_FIELDS = r"messages|tools|input|choices|contents|content|response_format|tool_choice|parameters|generation_config|body"
"""The first parts of dotted names that denote fields of a request."""

_SECTION = r"(?:adapters|plugins)(?:\.[a-z_-]+)+"
"""A section of ``trunkline.toml``, which a cure names in brackets."""

_HIDDEN = tuple(
    (mark, re.compile(pattern, re.IGNORECASE))
    for mark, pattern in (
        ("[path]", r"([\"'`])(?:file://|~?/|[a-z]:[\\/]|\\\\)[^\"'`\n]*\1"),
        ("[path]", rf"\bfile://[^\s\"'`<>]*{_PATH_CONTINUATION}"),
        ("[address]", r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]*[^\s\"'<>;,]"),
        ("[address]", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*"),
        ("[address]", r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?"),
        ("[address]", r"\[?(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])\]?(?::\d+)?"),
        ("[address]", r"\blocalhost\b(?::\d+)?|\b[a-z0-9][a-z0-9.-]*:\d{2,5}\b"),
        ("[account]", r"\b(?:org|proj|acct|account|user|team|tenant|cust|sub)[-_][a-z0-9]{6,}[a-z0-9_-]*"),
        ("[account]", r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
        (
            "[path]",
            rf"(?<![\w/.])~?/[\w.@+-][\w./@+-]*{_PATH_CONTINUATION}|\b[a-z]:\\[^\s\"']+{_PATH_CONTINUATION}|\\\\[^\s\"']+{_PATH_CONTINUATION}",
        ),
        ("[hidden]", rf"\S{{{MAX_WORD_CHARS},}}"),
    )
)


_DOTTED = re.compile(
    rf"(?<![\w.\]-])(?!(?:{_FIELDS})\.)(?!{_SECTION}\])(?:(?:[^\W_]|-)+\.)+(?!\w*(?:Error|Exception|Timeout)\b)"
    r"(?:xn--[a-z0-9-]+|[^\W\d_]{2,})(?![\w-])(?::\d+)?",
    re.IGNORECASE,
)
"""A dotted name that is neither a field of a request, a section nor the name of an error. Top-level domains are not
enumerated."""


class ModelErrorFormatter:
    """Formats the line. ``redactor`` removes the secrets of this home."""

    def __init__(self, redactor: LogRedactor) -> None:
        self._redactor = redactor

    def describe(self, error: ModelError, model: str = "") -> str:
        """Return the line: the model that was called (``adapter/model``, "" for none), the fault and the
        error's text."""
        if error.fault == "over_budget" or error.code is ErrorCode.PANIC:
            # Trunkline's own sentences, in which times look like addresses; no provider was asked
            return _shorten(self._redactor.redact(error.detail))
        if not model or error.code is ErrorCode.NOT_SENT:
            return _shorten(
                self._redact(error.detail)
            )  # Trunkline's own text, which may name files: AGENT.md is not a host name
        detail = _DOTTED.sub("[address]", self._redact(error.detail))
        fault = NOT_TAKEN if error.code is ErrorCode.INVALID_REQUEST else FAULT_TEXT[error.fault]
        return _shorten(f"{model}: {fault}{f' ({detail})' if detail else ''}.")

    def _redact(self, text: str) -> str:
        """Return the text without secrets, addresses, account ids and paths."""
        text = self._redactor.redact(text.partition("Traceback")[0])
        if len(text) > MAX_INPUT_CHARS:  # some patterns take quadratic time, and turns wait for this
            text = text[:MAX_INPUT_CHARS].rpartition(" ")[0]
        for mark, hidden in _HIDDEN:
            text = hidden.sub(mark, text)
        return " ".join(printable(text).split()).rstrip(" .:,")


def _shorten(text: str) -> str:
    """Return the beginning of the text, cut between two words: half a word may be half a secret."""
    return text if len(text) <= MAX_LINE_CHARS else f"{truncate_words(text, MAX_LINE_CHARS)} …"
