"""The exceptions of the platform and the fixed error codes.

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

import errno
from enum import StrEnum
from typing import Literal


class TrunklineError(Exception):
    """An error that a person can fix: one sentence that says what and where, and a hint that says what to do.

    ``exit_status`` is the exit status of a command that ends with this error.
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
    """The codes that may cross a border, each with one fixed sentence."""

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
    OVER_BUDGET = "over_budget"
    NOT_SENT = "not_sent"
    TOOL_ERROR = "tool_error"
    CONTEXT_OVERFLOW = "context_overflow"
    PANIC = "panic"
    INTERNAL = "internal"


TRANSIENT_CODES = (ErrorCode.ENGINE_UNAVAILABLE, ErrorCode.STORAGE_FAILURE)
"""The codes of a worker that cannot work now. The same request may succeed later."""

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
    ErrorCode.OVER_BUDGET: "A budget is used up, so no model was asked. Wait until it opens again, or ask the owner, "
    "who opens it with: trunkline budget reset",
    ErrorCode.NOT_SENT: "No model was asked, because a setting or safeguard of the owner does not permit it. Leave "
    "pictures and files out, or ask the owner, who is shown the reason.",
    ErrorCode.TOOL_ERROR: "A tool failed in a way the turn could not recover from.",
    ErrorCode.CONTEXT_OVERFLOW: "The conversation no longer fits the model's context window.",
    ErrorCode.PANIC: "Everything was stopped. The owner releases it with: trunkline panic --release",
    ErrorCode.INTERNAL: "Something went wrong. The log has the details.",
}
"""The sentence that a client receives for each code. Raw details go to the log only."""

ModelFault = Literal[
    "authentication",
    "rate_limited",
    "unavailable",
    "timeout",
    "bad_response",
    "wrong_format",
    "interrupted",
    "refused",
    "over_budget",
]


class ModelError(Exception):
    """A model call failed.

    ``code`` is sent to clients: ``provider_error`` or ``context_overflow``, or ``invalid_request`` if the request has
    files that the model does not take. Trunkline's own refusals, with which no vendor was asked, have ``over_budget``,
    ``rate_limited`` (calls that still run hold the rest of a budget), ``not_sent`` or ``panic``. ``fault`` is the finer
    reason for logs, traces and middleware that retries. ``detail`` is raw text for the log and is not sent to clients.
    ``retry_after`` is the number of seconds after which the vendor accepts another request; None if the vendor does not
    say.
    """

    def __init__(
        self, code: ErrorCode, fault: ModelFault, detail: str = "", *, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{code} ({fault}): {detail}")
        self.code = code
        self.fault: ModelFault = fault
        self.detail = detail
        self.retry_after = retry_after


ToolErrorKind = Literal[
    "invalid_arguments", "not_found", "no_match", "conflict", "too_large", "permission_denied", "approval_denied",
    "no_answer", "rate_limited", "limit_exceeded", "timeout", "cancelled", "outcome_unknown", "unavailable",
    "unsupported", "upstream_error", "failed", "internal",
]  # fmt: skip

TOOL_ERROR_KINDS: dict[ToolErrorKind, str] = {
    "invalid_arguments": "the arguments of the call are wrong; other arguments may work",
    "not_found": "the call names something that does not exist: a tool, a file, a page, a chunk",
    "no_match": "the text to find or replace does not occur, or occurs more than once",
    "conflict": "the target exists already, or was changed meanwhile",
    "too_large": "an argument, a file or a result exceeds the size limit",
    "permission_denied": "a policy, a guard, a scope or the operating system forbids the call",
    "approval_denied": "a person denied the call, or nobody answered in time",
    "no_answer": "a person did not answer the tool's question",
    "rate_limited": "the limit of calls is reached; a later call may work",
    "limit_exceeded": "a program exceeded its limit of memory or processor time",
    "timeout": "the call exceeded its time limit",
    "cancelled": "somebody stopped the call",
    "outcome_unknown": "the call may have had its effect; verify before calling again",
    "unavailable": "something that the call needs cannot be reached now; a later call may work",
    "unsupported": "the call is impossible here until a person installs, configures or repairs something",
    "upstream_error": "a server, site or program elsewhere answered with an error",
    "failed": "the tool reports a failure without a kind",
    "internal": "a defect of the tool or the platform; the log has the details",
}
"""The meaning of each kind of tool error. A kind is stable, so programs may rely on it; its text may change."""


class ToolError(Exception):
    """A tool refused or failed. The text goes to the model: what, why, and what would be allowed. ``kind`` is for
    programs: one of ``TOOL_ERROR_KINDS``."""

    kind: ToolErrorKind = "failed"

    def __init__(self, text: str = "", *, kind: ToolErrorKind | None = None) -> None:
        super().__init__(text)
        if kind is not None:
            self.kind = kind


class OutcomeUnknown(ToolError):
    """The tool may have had its effect, and cannot tell. The text tells the model to verify before doing it again."""

    kind: ToolErrorKind = "outcome_unknown"


class NoAnswer(ToolError):
    """A person who was asked something did not answer, would not, or cannot be asked; the text says which."""

    kind: ToolErrorKind = "no_answer"


class CompletionError(ToolError):
    """A model did not answer a question that was asked outside of a turn.

    ``code`` is one of ``ErrorCode`` or ``timeout``; the text is fixed for each code.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text, kind=error_kind_for_code(code))
        self.code = code


_KIND_OF_CODE: dict[str, ToolErrorKind] = {
    "invalid_request": "invalid_arguments", "invalid_path": "invalid_arguments", "invalid_value": "invalid_arguments",
    "invalid_type": "invalid_arguments", "invalid_scope": "invalid_arguments", "invalid_fields": "invalid_arguments",
    "missing_required_fields": "invalid_arguments", "bad_request": "invalid_arguments", "bad_archive":
    "invalid_arguments", "unauthorized": "permission_denied", "forbidden": "permission_denied", "panic":
    "permission_denied", "invalid_policy": "unsupported", "not_found": "not_found", "conflict": "conflict",
    "write_conflict": "conflict", "too_large": "too_large", "context_overflow": "too_large", "rate_limited":
    "rate_limited", "over_budget": "rate_limited", "not_sent": "permission_denied", "timeout": "timeout",
    "not_supported": "unsupported",
    "unsupported_format": "invalid_arguments", "provider_error": "upstream_error", "engine_unavailable": "unavailable",
    "storage_failure": "unavailable", "write_failure": "unavailable", "internal": "internal",
}  # fmt: skip


def error_kind_for_code(code: str) -> ToolErrorKind:
    """The kind of a tool error that comes from a worker's fault with this code."""
    return _KIND_OF_CODE.get(code, "failed")


def error_kind_named(name: str) -> ToolErrorKind:
    """The kind of this name; ``failed`` for one that this version does not know."""
    for kind in TOOL_ERROR_KINDS:
        if kind == name:
            return kind
    return "failed"


_KIND_OF_ERRNO: dict[int, ToolErrorKind] = {
    errno.ENOENT: "not_found", errno.ENOTDIR: "not_found", errno.EISDIR: "invalid_arguments",
    errno.EINVAL: "invalid_arguments", errno.ENAMETOOLONG: "invalid_arguments", errno.EEXIST: "conflict",
    errno.ENOTEMPTY: "conflict", errno.EACCES: "permission_denied", errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied", errno.ELOOP: "permission_denied", errno.EFBIG: "too_large",
    errno.ENOSPC: "unavailable", errno.EDQUOT: "unavailable", errno.ETIMEDOUT: "timeout",
}  # fmt: skip


def error_kind_for_os(error: OSError) -> ToolErrorKind:
    """The kind of a tool error that the operating system is the cause of."""
    return _KIND_OF_ERRNO.get(error.errno or 0, "failed")
