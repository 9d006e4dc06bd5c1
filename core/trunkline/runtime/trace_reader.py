"""Reads the trace of a turn: its id from the turn's journal, and its spans from the bus."""

import anyio

from trunkline.contracts.turns.journal_messages import TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry.semconv import INVOKE_AGENT
from trunkline.telemetry.trace_tree import latest_spans
from trunkline_bus import Bus, SubjectError

POLL_SECONDS = 5.0
"""Seconds to wait for a journal that does not answer."""

PAUSE = 0.1


async def find_trace(bus: Bus, turn: str = "") -> tuple[str, str] | None:
    """Return the ids of a turn and of its trace, "" if it was not traced; None if the journal has no such turn. Without
    a ``turn`` it is the last one. Raises BusError.
    """
    try:
        last = await bus.last(JOURNAL, timeout=POLL_SECONDS, **({"turn": turn} if turn else {}))
    except SubjectError:
        return None
    if last is None:
        return None
    async for stored in bus.history(JOURNAL, after=0, **last.keys):
        for entry in stored.data.entries:
            if isinstance(entry, TurnStarted) and entry.request.traceparent:
                return last.data.turn, entry.request.traceparent.split("-")[1]
    return last.data.turn, ""


async def read_spans(bus: Bus, trace: str, *, wait: float = 0.0) -> list[SpanRecord]:
    """Return the spans of a trace, each once. The span of the turn arrives last: for a turn that has just ended, wait
    at most ``wait`` seconds for it. Raises BusError.
    """
    spans = await _stored_spans(bus, trace)
    with anyio.move_on_after(wait):
        while not any(span.name.startswith(INVOKE_AGENT) and not span.unfinished for span in spans):
            await anyio.sleep(PAUSE)
            spans = await _stored_spans(bus, trace)
    return list(latest_spans(spans))


async def _stored_spans(bus: Bus, trace: str) -> list[SpanRecord]:
    return [span async for batch in bus.history(SPANS, after=0, trace=trace) for span in batch.data.spans]
