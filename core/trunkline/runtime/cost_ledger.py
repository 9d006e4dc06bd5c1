"""The cost ledger: one entry for each request to a model, also if every process is killed (ADR 64).

::

    opened record ──> request to the vendor ──> entry ──> opened record deleted

The opened record is on disk before the request is sent, so every request that a vendor may bill is known. A worker that
dies leaves its opened records behind; ``cost_recovery`` writes their entries.
"""

import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol

import anyio
from msgspec.structs import replace
from opentelemetry import trace

from trunkline._util.text import printable
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.estimate import Progress, opened_request, unfinished_entry
from trunkline.contracts.costs.messages import CostEntry, RequestOpened, RequestStatus
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.models.adapter import AnswerSource, Finish, ModelEvent, ModelRequest
from trunkline.contracts.models.prices import PriceTable
from trunkline.errors import ModelError
from trunkline_bus import Bus, BusError, SequenceConflict, new_id

log = logging.getLogger(__name__)

OPEN_SECONDS = 10.0
"""Seconds within which the opened record must be stored. Without it the request is not sent."""

END_SECONDS = 2.0
"""Seconds that the end of an answer waits for its entry. After that the entry is stored in the background."""

MODEL_NAME_LIMIT = 200
"""Characters of the name of the model that answered. The vendor sends it, and a line of the log must stay short."""

PAUSE = 2.0
"""Seconds before a failed store or deletion is tried again."""

LAST_SECONDS = 5.0
"""Seconds in which a worker that stops stores its last entries."""


class RequestRecord(Protocol):
    """A request that is recorded while the context is open. Entering it stores the opened record; leaving it stores the
    entry, unless ``finish`` did.
    """

    async def __aenter__(self) -> "RequestRecord":
        """Store the opened record. Raises BusError if it cannot be stored: then nothing may be sent."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...

    def add(self, event: ModelEvent) -> None:
        """Count a part of the answer."""
        ...

    async def finish(self, finish: Finish) -> Finish:
        """Store the entry of a complete answer. Return the end of the answer with the cost of that entry."""
        ...


class RequestLedger(Protocol):
    """Records requests."""

    def request(self, request: ModelRequest, source: AnswerSource) -> RequestRecord:
        """Return the record of a request to an adapter."""
        ...


class CostLedger:
    """The ledger of one worker. ``run`` must run as long as requests are sent."""

    def __init__(self, bus: Bus, worker: str, prices: PriceTable) -> None:
        self._bus = bus
        self._worker = worker
        self._prices = prices
        self._open: set[str] = set()
        """The ids of requests whose opened records are stored, or may be."""
        self._ended: deque[_Ended] = deque()
        self._unsent: deque[RequestOpened] = deque()
        """The opened records of requests that were not sent, which the server may store nevertheless."""
        self._is_reconnected = False
        self._some = anyio.Event()

    def request(self, request: ModelRequest, source: AnswerSource) -> RequestRecord:
        """Return the record of a request to an adapter. ``request.id`` identifies it."""
        span = trace.get_current_span().get_span_context()
        entry = CostEntry(
            id=request.id or new_id("request"),  # a middleware may have lost it
            at=datetime.now(UTC),
            block=request.block,
            conversation=request.conversation,
            turn=request.turn,
            budget_turn=request.budget_turn if request.budget_turn != request.turn else "",
            actor=request.actor,
            trace=f"{span.trace_id:032x}" if span.is_valid else "",
            purpose=request.purpose,
            adapter=source.adapter,
            vendor=source.vendor,
            requested=source.requested,
            status="interrupted",
            worker=self._worker,
        )
        return _LedgerRequest(self, opened_request(entry, request, self._prices.find_rate(source.label)))

    async def run(self) -> None:
        """Delete the opened records of ended requests, and store the entries that the bus did not take at first, until
        cancelled."""
        undo = self._bus.on_reconnect(self._reconnected)
        try:
            while True:
                await self._some.wait()
                self._some = anyio.Event()
                while not await self._settle_all():  # noqa: ASYNC110 - the bus reports no event to wait for
                    await anyio.sleep(PAUSE)
        finally:
            undo()
            with anyio.move_on_after(LAST_SECONDS, shield=True):
                await self._settle_all()

    async def open(self, opened: RequestOpened) -> int:
        """Store an opened record and return its sequence. Raises BusError. If it raises, also because the caller was
        cancelled, nothing may be sent, and the record is deleted in the background if the server has it.
        """
        self._open.add(opened.entry.id)
        try:
            return await self._append_opened(opened)
        except BaseException:
            self._unsent.append(opened)
            self._some.set()
            raise

    async def _append_opened(self, opened: RequestOpened) -> int:
        ack = await self._bus.append(
            OPENED_REQUEST,
            opened,
            msg_id=opened.entry.id,
            expect=0,
            timeout=OPEN_SECONDS,
            worker=self._worker,
            id=opened.entry.id,
        )
        return ack.seq

    async def close(self, entry: CostEntry, opened: int) -> None:
        """Store the entry of an ended request. If that takes long, it happens in the background."""
        left: CostEntry | None = entry
        with anyio.move_on_after(END_SECONDS, shield=True):
            try:
                await append_entry(self._bus, entry, timeout=END_SECONDS)
                left = None
            except BusError as error:
                log.warning("the cost of request %s is stored later: %s", entry.id, error)
        self._ended.append(_Ended(entry.id, opened, left))
        self._some.set()

    async def _settle_all(self) -> bool:
        """Settle the ended requests in order. Report whether all are settled."""
        try:
            while self._unsent:
                await self._discard(self._unsent[0])
                self._open.discard(self._unsent.popleft().entry.id)
            while self._ended:
                await self._settle(self._ended[0])
                self._open.discard(self._ended.popleft().id)
            if self._is_reconnected:
                await self._delete_again()
        except BusError as error:
            log.warning("the records of ended requests cannot be settled now: %s", error)
            return False
        return True

    async def _settle(self, ended: "_Ended") -> None:
        if ended.entry is not None:
            await append_entry(self._bus, ended.entry)
            ended.entry = None
        await self._bus.delete(OPENED_REQUEST, ended.opened, missing_ok=True)

    async def _discard(self, opened: RequestOpened) -> None:
        """Delete the opened record of a request that was not sent."""
        with suppress(SequenceConflict):
            await self._append_opened(opened)  # arrives after the first one, if that was still under way
        stored = await self._bus.last(OPENED_REQUEST, worker=self._worker, id=opened.entry.id)
        if stored is not None:
            await self._bus.delete(OPENED_REQUEST, stored.seq, missing_ok=True)

    async def _reconnected(self) -> None:
        self._is_reconnected = True
        self._some.set()

    async def _delete_again(self) -> None:
        """Delete the opened records of requests that ended before.

        A server whose disk was full may restart with records that it had deleted. Each would stay until this worker
        ends, and then be taken for a request that a crash interrupted.
        """
        self._is_reconnected = False
        try:
            async for stored in self._bus.history(OPENED_REQUEST, worker=self._worker):
                if stored.data.entry.id not in self._open:
                    await self._bus.delete(OPENED_REQUEST, stored.seq, missing_ok=True)
        except BusError:
            self._is_reconnected = True
            raise


@dataclass(slots=True)
class _Ended:
    """A request that ended. ``opened`` is the sequence of its opened record. ``entry`` is None once it is stored."""

    id: str
    opened: int
    entry: CostEntry | None


class _LedgerRequest:
    def __init__(self, ledger: CostLedger, opened: RequestOpened) -> None:
        self._ledger = ledger
        self._opened = opened
        self._sequence = 0
        self._began = 0.0
        self._progress = Progress()
        self._closed = False

    async def __aenter__(self) -> RequestRecord:
        self._sequence = await self._ledger.open(self._opened)
        self._began = anyio.current_time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._closed:
            return
        failure = error if isinstance(error, ModelError) else None
        status: RequestStatus = "failed" if isinstance(error, Exception) or error is None else "cancelled"
        entry = unfinished_entry(self._opened, status, self._progress, self._seconds, failure)
        await self._ledger.close(entry, self._sequence)

    def add(self, event: ModelEvent) -> None:
        self._progress.add(event, self._seconds)

    async def finish(self, finish: Finish) -> Finish:
        self._closed = True
        entry = self._entry(finish)
        await self._ledger.close(entry, self._sequence)
        return replace(finish, cost=entry.cost)

    def _entry(self, finish: Finish) -> CostEntry:
        if (
            finish.usage == Usage() and self._opened.max_cost
        ):  # the vendor billed something, and does not say what
            entry = unfinished_entry(self._opened, "finished", self._progress, self._seconds)
            return replace(entry, model=finish.model)
        return replace(
            self._opened.entry,
            status="finished",
            model=finish.model,
            usage=finish.usage,
            cost=finish.cost,
            price=finish.price_version,
            estimated=False,
            seconds=round(self._seconds, 3),
        )

    @property
    def _seconds(self) -> float:
        return anyio.current_time() - self._began


class NoLedger:
    """Records nothing: for adapters that ask no model."""

    def request(self, request: ModelRequest, source: AnswerSource) -> RequestRecord:
        """Return a context that does nothing."""
        return _Unrecorded()


class _Unrecorded:
    async def __aenter__(self) -> RequestRecord:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        return

    def add(self, event: ModelEvent) -> None:
        return

    async def finish(self, finish: Finish) -> Finish:
        return finish


def short_model_name(name: str) -> str:
    """Return the name of a model, which a vendor sends, without control characters and not too long."""
    return printable(name[:MODEL_NAME_LIMIT])


async def append_entry(bus: Bus, entry: CostEntry, *, only: bool = False, timeout: float = 10.0) -> None:
    """Store an entry in the ledger. With ``only``, raises SequenceConflict if the request has an entry."""
    await bus.append(
        COST,
        entry,
        msg_id=f"{entry.id}.{entry.status}",
        expect=0 if only else None,
        timeout=timeout,
        day=entry.day,
        id=entry.id,
    )
