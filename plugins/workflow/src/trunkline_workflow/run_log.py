"""The calls of a run with their results, in order. Pure."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline_workflow.runs import RunView


def log_rows(view: "RunView") -> list[dict[str, Any]]:
    """Return the calls of a run in order."""
    rows = []
    for call in view.state.calls:
        result, decided = view.journal.results.get(call.id), view.journal.decisions.get(call.id)
        earlier = result is None and call.id in view.record.start.done
        outcome = "earlier run" if earlier else "open" if result is None else result.kind or "ok"
        rows.append(
            {
                "step": call.step,
                "call": call.id,
                "tool": call.tool,
                "arguments": call.arguments,
                "outcome": outcome,
                "by": decided.by if decided is not None else "",
                "result": result.text if result is not None else "",
            }
        )
    return rows
