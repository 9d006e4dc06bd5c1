"""The circuits of models, as all monitors see them. This process decides by its copy, also while the bus is away."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio

from trunkline import LifespanContext
from trunkline.api.bus import Bus, BusError, KeyValueEntry, SequenceConflict, key_of
from trunkline.api.model import CIRCUIT_BUCKET, Circuit, ModelFault
from trunkline_failover.settings import FailoverSettings

log = logging.getLogger(__name__)

WRITE_SECONDS = 2.0
"""Seconds that a model call waits at most for the bus to store a circuit."""

POLL_SECONDS = 1.0
"""Seconds between two readings of the circuits. A monitor may read the bucket, but not follow it with a consumer."""

LONGEST_NAMED_PAUSE = 3_600.0
"""Seconds for which a vendor's own pause opens a circuit at most. A probe after that costs one request."""


class CircuitBreaker:
    """Opens and closes circuits. A circuit that cannot be stored on the bus holds in this process only."""

    def __init__(self) -> None:
        self._circuits: dict[str, Circuit] = {}
        self._revisions: dict[str, int] = {}
        self._bus: Bus | None = None

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Share the circuits with the other monitors while the context is open."""
        async with anyio.create_task_group() as tasks:
            self._bus = context.bus
            tasks.start_soon(self._poll, context.bus)
            try:
                yield
            finally:
                self._bus = None
                tasks.cancel_scope.cancel()

    def open_until(self, model: str) -> datetime | None:
        """Return the end of the time for which the model's circuit is open; None if the circuit is closed."""
        circuit = self._circuits.get(model)
        return circuit.open_until if circuit is not None else None

    async def claim_probe(self, model: str, settings: FailoverSettings) -> bool:
        """Report whether this process may call the model.

        A closed circuit permits every call. An open circuit permits none before its time is over; then the first
        process that claims the probe may call the model once.
        """
        circuit = self._circuits.get(model)
        if circuit is None or circuit.open_until is None:
            return True
        if datetime.now(UTC) < circuit.open_until:
            return False
        until = datetime.now(UTC) + timedelta(seconds=settings.open_seconds)
        return await self._store(_replaced(circuit, open_until=until))

    async def record_failure(
        self, model: str, fault: ModelFault, retry_after: float | None, settings: FailoverSettings
    ) -> None:
        """Count a failure, and open the circuit when it is one too many."""
        now, before = datetime.now(UTC), self._circuits.get(model)
        failures = before.failures + 1 if before is not None else 1
        until = before.open_until if before is not None else None
        if failures >= settings.open_after:
            named = min(retry_after or 0.0, LONGEST_NAMED_PAUSE)
            until = now + timedelta(seconds=max(settings.open_seconds, named))
            if before is None or before.open_until is None:
                log.warning(
                    "the circuit of %s opens until %s after %d failures (%s)", model, until, failures, fault
                )
        circuit = Circuit(model=model, failures=failures, fault=fault, changed_at=now, open_until=until)
        await self._store(circuit, always=True)

    async def record_success(self, model: str) -> None:
        """Close the circuit. A model that did not fail costs no request."""
        before = self._circuits.get(model)
        if before is None or not before.failures:
            return
        if before.open_until is not None:
            log.info("the circuit of %s closes", model)
        now = datetime.now(UTC)
        await self._store(Circuit(model=model, failures=0, fault="", changed_at=now), always=True)

    async def _store(self, circuit: Circuit, *, always: bool = False) -> bool:
        """Store a circuit here and on the bus. Report whether this process was the first to change the revision that
        it knew; with ``always`` a change by another process does not matter."""
        key, model = key_of("circuit", circuit.model), circuit.model
        revision, bus = self._revisions.get(model, 0), self._bus
        self._circuits[model] = circuit
        if bus is None:
            return True
        try:
            with anyio.fail_after(WRITE_SECONDS):
                bucket = bus.kv(CIRCUIT_BUCKET)
                if always:
                    self._revisions[model] = await bucket.put(key, circuit)
                else:
                    self._revisions[model] = await bucket.update(key, circuit, revision)
        except SequenceConflict:
            return False  # the next reading brings the other process's circuit
        except (BusError, TimeoutError) as error:
            log.warning("the circuit of %s could not be shared: %s", model, error)
        return True

    async def _poll(self, bus: Bus) -> None:
        while True:
            try:
                for entry in await bus.kv(CIRCUIT_BUCKET).entries():
                    self._take(entry)
            except BusError as error:
                log.debug("the circuits of other monitors cannot be read: %s", error)
            await anyio.sleep(POLL_SECONDS)

    def _take(self, entry: KeyValueEntry[Circuit]) -> None:
        circuit = entry.value
        if circuit is None:  # expired after a day without a change
            return
        if entry.revision >= self._revisions.get(circuit.model, 0):
            self._circuits[circuit.model] = circuit
            self._revisions[circuit.model] = entry.revision


def _replaced(circuit: Circuit, *, open_until: datetime) -> Circuit:
    return Circuit(
        model=circuit.model, failures=circuit.failures, fault=circuit.fault, changed_at=datetime.now(UTC),
        open_until=open_until,
    )  # fmt: skip
