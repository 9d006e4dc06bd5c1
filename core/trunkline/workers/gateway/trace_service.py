"""The trace service: the spans of one turn, for whoever may read its block."""

from dataclasses import dataclass

from msgspec.structs import replace

from trunkline.contracts.gateway.access import is_home_owner
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.errors import ErrorCode
from trunkline.runtime.trace_reader import find_trace, read_spans
from trunkline.telemetry.trace_tree import spans_of_turn
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.message_service import MessageService
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The spans of a turn, and the id of their trace."""

    trace: str
    spans: tuple[SpanRecord, ...]


class TraceService:
    """Reads the traces of turns. Methods raise Refusal, and BusError when the bus does not answer."""

    def __init__(self, bus: Bus, messages: MessageService) -> None:
        self._bus = bus
        self._messages = messages

    async def trace(self, turn: str, sender: Sender) -> TurnTrace:
        """Return the trace of a turn as far as it has been recorded. Refused with ``not_found``, also for a turn
        without a trace.

        The owner gets the whole trace. Anybody else gets the spans of this turn only, because the trace may contain
        turns of other blocks; without attributes, which may have texts of memory; and without the texts of errors.
        """
        state = await self._messages.find(turn, sender)
        found = await find_trace(self._bus, state.request.turn)
        if found is None or not found[1]:
            raise refusal(ErrorCode.NOT_FOUND, "The turn has no trace.")
        spans = tuple(await read_spans(self._bus, found[1]))
        if is_home_owner(sender.identity):
            return TurnTrace(found[1], spans)
        return TurnTrace(found[1], tuple(replace(one, message="") for one in spans_of_turn(spans, turn)))
