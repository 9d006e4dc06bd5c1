"""The errors of the platform. Nothing but exception types and the fixed codes may be in here.

::

    TrunklineError                what a person can act on: a sentence and a hint
    ├── ConfigError               a value in a file, the environment or a flag is not usable
    ├── PluginError               a plugin could not be loaded or broke its contract
    ├── StorageError              a folder or repository cannot be used as it must be
    ├── UnreadableDocument        a file cannot be read as a document
    └── Unavailable               a worker or the bus does not answer
    ModelError                    a model call failed, with one of the fixed codes
    ToolError                     a tool refused or failed; the text goes to the model
    ├── OutcomeUnknown            nobody can say whether it had its effect
    ├── NoAnswer                  a person did not answer what it asked
    └── CompletionError           a model that a tool or background work asked did not answer
"""

from enum import StrEnum
from typing import Literal


class TrunklineError(Exception):
    """Something a person can mend: one sentence that says what and where, and a hint that says what to do.

    ``exit_status`` is what a command leaves with that ends by it.
    """

    exit_status = 1

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class ConfigError(TrunklineError):
    """A configuration value is unknown, missing or of the wrong type."""


class PluginError(TrunklineError):
    """A plugin cannot be used; the sentence names the plugin and the cure."""


class StorageError(TrunklineError):
    """A folder, disk or repository cannot be used; nothing was half-written."""


class UnreadableDocument(TrunklineError):
    """A file cannot be read as a document. The sentence is the end of one that begins with its name: "it is broken"."""


class Unavailable(TrunklineError):
    """A worker or the bus does not answer."""


class ErrorCode(StrEnum):
    """The codes that may cross a border (PA-F31, PA-F32, conflict C35), each with one fixed sentence."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    STORAGE_FAILURE = "storage_failure"
    PROVIDER_ERROR = "provider_error"
    TOOL_ERROR = "tool_error"
    CONTEXT_OVERFLOW = "context_overflow"
    PANIC = "panic"
    INTERNAL = "internal"


FIXED_SENTENCES: dict[ErrorCode, str] = {
    ErrorCode.INVALID_REQUEST: "The request is not valid.",
    ErrorCode.UNAUTHORIZED: "A valid credential is required.",
    ErrorCode.FORBIDDEN: "This is not permitted.",
    ErrorCode.NOT_FOUND: "There is nothing by that name.",
    ErrorCode.CONFLICT: "The request conflicts with what is there.",
    ErrorCode.TOO_LARGE: "The message is too large.",
    ErrorCode.RATE_LIMITED: "Too many requests. Try again later.",
    ErrorCode.ENGINE_UNAVAILABLE: "The agent is not available right now. Your message was not accepted; try again.",
    ErrorCode.STORAGE_FAILURE: "Storage failed. The message may not have been persisted.",
    ErrorCode.PROVIDER_ERROR: "The model provider failed to answer.",
    ErrorCode.TOOL_ERROR: "A tool failed in a way the turn could not recover from.",
    ErrorCode.CONTEXT_OVERFLOW: "The conversation no longer fits the model's context window.",
    ErrorCode.PANIC: "Everything was stopped. The owner lets it go on with: trunkline panic --release",
    ErrorCode.INTERNAL: "Something went wrong. The log has the details.",
}
"""What a client is told for each code. Raw detail goes to the log only (ARCH-6)."""

ModelFault = Literal[
    "authentication", "rate_limited", "unavailable", "timeout", "bad_response", "interrupted", "refused"
]


class ModelError(Exception):
    """A model call failed.

    ``code`` is what clients see (``provider_error`` or ``context_overflow``), ``fault`` is the finer reason for
    logs, traces and middleware that retries, and ``detail`` is raw text for the log, never for a client.
    """

    def __init__(self, code: ErrorCode, fault: ModelFault, detail: str = "") -> None:
        super().__init__(f"{code} ({fault}): {detail}")
        self.code = code
        self.fault: ModelFault = fault
        self.detail = detail


class ToolError(Exception):
    """A tool refused or failed. The text goes to the model: what, why, and what would be allowed."""


class OutcomeUnknown(ToolError):
    """The tool may have had its effect, and cannot tell. The text tells the model to verify before doing it again."""


class NoAnswer(ToolError):
    """A person who was asked something did not answer, would not, or cannot be asked; the text says which."""


class CompletionError(ToolError):
    """A model did not answer a question that was asked outside of a turn.

    ``code`` is one of ``ErrorCode``, or ``over_budget`` or ``timeout``; the text is fixed for each code.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
