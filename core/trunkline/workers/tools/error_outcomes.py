"""What the model is told when a tool, a guard or the worker fails: fixed sentences. The log has the rest.

A fixed sentence carries a correlation id, under which the log has the exception.
"""

import logging
import math

import anyio
import msgspec

from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.errors import OutcomeUnknown, ToolError, ToolErrorKind, error_kind_named
from trunkline_bus import new_id

log = logging.getLogger(__name__)

VERIFY = "It may have had its effect, whole or in part. Find out what is the case before you call it again."


def error_outcome(call: str, text: str, kind: ToolErrorKind) -> ToolOutcome:
    """An outcome that tells the model what went wrong, and programs what kind of error it is."""
    return ToolOutcome(call=call, status="error", output=text, error_kind=kind)


def refusal_outcome(call: str, error: ToolError) -> ToolOutcome:
    """The outcome of a ``ToolError``: its text, as the tool or guard wrote it."""
    text = encodable_text(str(error)) or "The tool refused without saying why."
    if isinstance(error, OutcomeUnknown):
        return _in_doubt(call, text)
    return error_outcome(call, text, error_kind_named(error.kind))


def incident_outcome(
    call: str, sentence: str, error: BaseException | None = None, **facts: object
) -> ToolOutcome:
    """A fixed sentence with a correlation id; what happened is logged under the same id."""
    number = new_id("incident")
    log.error("%s: %s", number, sentence, exc_info=error, extra={"incident": number, "call": call, **facts})
    return error_outcome(call, f"{sentence} The log has the details under {number}.", "internal")


def leaves_doubt(spec: ToolSpec) -> bool:
    """Report whether a call that was cut off leaves a doubt behind: not if it can be repeated. One on another host
    can be under its own key alone, which the model's next call does not have.
    """
    return spec.effect != "read" if spec.is_remote else not spec.repeatable


def interrupted_outcome(call: str, spec: ToolSpec, sentence: str, kind: ToolErrorKind) -> ToolOutcome:
    """The outcome of a call that began and did not come to its own end: unknown, unless it can be repeated."""
    return (
        _in_doubt(call, f"{sentence} {VERIFY}") if leaves_doubt(spec) else error_outcome(call, sentence, kind)
    )


def _in_doubt(call: str, text: str) -> ToolOutcome:
    return ToolOutcome(call=call, status="unknown", output=text, error_kind="outcome_unknown")


def crash_outcome(call: str, spec: ToolSpec, error: BaseException) -> ToolOutcome:
    """The outcome of a tool that failed in a way of which it says nothing itself."""
    ended = interrupted_outcome(call, spec, f"{spec.name} failed unexpectedly.", "internal")
    told = incident_outcome(call, ended.output, error, tool=spec.name)
    return msgspec.structs.replace(told, status=ended.status, error_kind=ended.error_kind)


def unknown_outcome(call: str, name: str) -> ToolOutcome:
    """The outcome of a call whose worker died while the effect was under way."""
    text = f"The outcome of {name} is unknown: the worker that ran it died before it could report. {VERIFY}"
    return _in_doubt(call, text)


def unreadable_record_outcome(call: str, name: str, error: BaseException) -> ToolOutcome:
    """The outcome of a call whose record cannot be read: it was not run now, but another worker may have run it."""
    sentence = (
        f"{name} was not run now, and whether it ran before is unknown: its record cannot be read. {VERIFY}"
    )
    told = incident_outcome(call, sentence, error)
    return msgspec.structs.replace(told, status="unknown", error_kind="outcome_unknown")


def tool_error_in(error: BaseException) -> ToolError | None:
    """The ``ToolError`` that this is, or that a task group wrapped as the only failure."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, ToolError) else None


def is_being_cancelled() -> bool:
    """Report whether the running task is asked to end; if not, a cancellation exception is the tool's own doing."""
    return anyio.current_effective_deadline() == -math.inf


def encodable_text(text: str) -> str:
    """The text as it is, save for lone surrogates, which no encoding of the bus can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
