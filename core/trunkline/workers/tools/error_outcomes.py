"""The outcomes that a model receives when a tool, a guard or the worker fails: fixed sentences with a correlation id.

The log contains the exception under the same id.
"""

import logging
import math

import anyio
import msgspec

from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.errors import OutcomeUnknown, ToolError, ToolErrorKind, error_kind_named
from trunkline_bus import new_id

log = logging.getLogger(__name__)

VERIFY = "It may have had its effect, in whole or in part. Check before you call it again."


def error_outcome(call: str, text: str, kind: ToolErrorKind) -> ToolOutcome:
    """Return an outcome with a text for the model and a kind for programs."""
    return ToolOutcome(call=call, status="error", output=text, error_kind=kind)


def refusal_outcome(call: str, error: ToolError) -> ToolOutcome:
    """Return the outcome of a ``ToolError``, with the text of the tool or guard."""
    text = encodable_text(str(error)) or "The tool refused without saying why."
    if isinstance(error, OutcomeUnknown):
        return _in_doubt(call, text)
    return error_outcome(call, text, error_kind_named(error.kind))


def incident_outcome(
    call: str, sentence: str, error: BaseException | None = None, **facts: object
) -> ToolOutcome:
    """Return a fixed sentence with a correlation id; the exception is logged under the same id."""
    number = new_id("incident")
    log.error("%s: %s", number, sentence, exc_info=error, extra={"incident": number, "call": call, **facts})
    return error_outcome(call, f"{sentence} The log has the details under {number}.", "internal")


def leaves_doubt(spec: ToolSpec) -> bool:
    """Report whether an interrupted call leaves its effect unknown. A repeatable call does not.

    A call on another host is repeatable only under its own key, and the model's next call has another key.
    """
    return spec.effect != "read" if spec.is_remote else not spec.repeatable


def interrupted_outcome(call: str, spec: ToolSpec, sentence: str, kind: ToolErrorKind) -> ToolOutcome:
    """Return the outcome of a call that was interrupted: unknown, unless it is repeatable."""
    return (
        _in_doubt(call, f"{sentence} {VERIFY}") if leaves_doubt(spec) else error_outcome(call, sentence, kind)
    )


def _in_doubt(call: str, text: str) -> ToolOutcome:
    return ToolOutcome(call=call, status="unknown", output=text, error_kind="outcome_unknown")


def crash_outcome(call: str, spec: ToolSpec, error: BaseException) -> ToolOutcome:
    """Return the outcome of a tool that failed with an unexpected exception."""
    interrupted = interrupted_outcome(call, spec, f"{spec.name} failed unexpectedly.", "internal")
    incident = incident_outcome(call, interrupted.output, error, tool=spec.name)
    return msgspec.structs.replace(incident, status=interrupted.status, error_kind=interrupted.error_kind)


def unknown_outcome(call: str, name: str) -> ToolOutcome:
    """Return the outcome of a call whose worker crashed while the call ran."""
    text = (
        f"The outcome of {name} is unknown: the worker that ran it crashed before it could report. {VERIFY}"
    )
    return _in_doubt(call, text)


def unreadable_record_outcome(call: str, name: str, error: BaseException) -> ToolOutcome:
    """Return the outcome of a call whose record cannot be read: this worker did not run it, but another worker may
    have.
    """
    sentence = f"{name} was not run now, and it may have run before: its record cannot be read. {VERIFY}"
    incident = incident_outcome(call, sentence, error)
    return msgspec.structs.replace(incident, status="unknown", error_kind="outcome_unknown")


def tool_error_in(error: BaseException) -> ToolError | None:
    """Return the ``ToolError``, also when a task group wrapped it as the only failure; otherwise None."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, ToolError) else None


def is_being_cancelled() -> bool:
    """Report whether the running task is being cancelled. If not, the tool itself raised the cancellation exception."""
    return anyio.current_effective_deadline() == -math.inf


def encodable_text(text: str) -> str:
    """Return the text with lone surrogates replaced, because no encoding of the bus can carry them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
