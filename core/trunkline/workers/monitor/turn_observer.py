"""The observation of running turns: the span, the status of the block, and the check of the trace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace

from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.telemetry import semconv
from trunkline.workers.monitor.block_status import BlockStatusPublisher
from trunkline.workers.monitor.journal import Fenced
from trunkline.workers.monitor.turn import Phase
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import remote_parent, start_span

tracer = trace.get_tracer("trunkline.monitor")


class TurnObserver:
    """Observes the turns of one monitor. ``on_end`` is called at the end of each run, also after an error."""

    def __init__(self, status: BlockStatusPublisher, on_end: Callable[[TurnRequested], None]) -> None:
        self._status = status
        self._on_end = on_end

    @contextmanager
    def observe(self, run: TurnRun) -> Iterator[None]:
        """Observe the run of a turn within this context."""
        request = run.request
        error: str | None = "interrupted"
        self._status.turn_started(request.block, request.turn)
        try:
            with (
                remote_parent(request.traceparent),
                start_span(
                    tracer,
                    f"{semconv.INVOKE_AGENT} {request.block}",
                    kind=trace.SpanKind.CONSUMER,
                    attributes=_attributes(run),
                ) as span,
            ):
                yield
                if run.turn.phase is Phase.PREEMPTED:
                    span.set_attribute(semconv.PREEMPTIONS, run.turn.preemptions)
                if run.turn.code is not None:
                    span.set_status(trace.StatusCode.ERROR, run.turn.code)
                error = run.turn.code
        except BaseExceptionGroup as failures:
            if failures.subgroup(Fenced) is not None:
                error = None  # another monitor owns the turn; the block has not failed
            raise
        finally:
            self._status.turn_ended(request.block, request.turn, error)
            self._on_end(request)


def _attributes(run: TurnRun) -> dict[str, str | int]:
    return {
        semconv.GEN_AI_OPERATION: "invoke_agent",
        semconv.GEN_AI_AGENT_NAME: run.request.block,
        semconv.GEN_AI_CONVERSATION_ID: run.request.conversation,
        semconv.TURN: run.request.turn,
        semconv.EPOCH: run.epoch,
        semconv.LANE: lane_of(run.request.trigger, run.request.lane),
    }
