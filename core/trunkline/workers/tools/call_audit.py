"""Writes the audit entry of a call when the call ends."""

from time import perf_counter

from msgspec import UnsetType

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.tools.call_registry import ActiveCall, CallHandler

CANCELLED = "cancelled"


def with_audit(work: CallHandler, audit: AuditLog) -> CallHandler:
    """Return the handler, extended to write the audit entry. A result from the ledger already has an
    entry."""

    async def with_entry(run: ActiveCall) -> ToolOutcome | None:
        started_at = perf_counter()
        try:
            outcome = await work(run)
        except Exception:
            await _write_entry(
                audit, run, perf_counter() - started_at, status="unknown", why="it could not be carried out."
            )
            raise
        if outcome is not None and not outcome.repeated:
            await _write_entry(
                audit,
                run,
                perf_counter() - started_at,
                effect=outcome.effect,
                status=_status(outcome),
                why=f"{run.stopped}." if run.stopped and outcome.status in ("error", "unknown") else "",
                size=len(outcome.output)
                if isinstance(outcome.stored, UnsetType)
                else outcome.stored.characters,
                **audit.describe_content(run.call.arguments, outcome.output),
            )
        return outcome

    return with_entry


async def _write_entry(audit: AuditLog, run: ActiveCall, seconds: float, **more: object) -> None:
    call = run.call
    await audit.record(
        event="call",
        block=call.block,
        actor=call.actor,
        conversation=call.conversation,
        turn=call.turn,
        call=call.call,
        tool=run.tool or call.name,
        seconds=round(seconds, 6),
        **more,
    )


def _status(outcome: ToolOutcome) -> str:
    """Return the status. A call that was stopped before it could have an effect is not a failure."""
    cancelled = outcome.status == "error" and outcome.error_kind == CANCELLED
    return CANCELLED if cancelled else outcome.status
