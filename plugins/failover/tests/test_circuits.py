"""Circuits that several processes share over a real server."""

import math
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import msgspec
import pytest

from trunkline import LifespanContext
from trunkline.api.model import CIRCUIT_BUCKET
from trunkline_bus import BusSettings, EmbeddedServer, connect
from trunkline_failover.circuits import CircuitBreaker
from trunkline_failover.settings import FailoverSettings

pytestmark = pytest.mark.anyio

SETTINGS = FailoverSettings(open_after=2, open_seconds=3)


@asynccontextmanager
async def shared(server: EmbeddedServer) -> AsyncIterator[CircuitBreaker]:
    """The circuits of one monitor."""
    circuits = CircuitBreaker()
    settings = BusSettings(url=server.url, user=server.user, password=server.password)
    async with connect(settings) as bus:
        await bus.kv(CIRCUIT_BUCKET).ensure()
        async with circuits.lifespan(LifespanContext("monitor", bus, "trunkline-failover")):
            yield circuits


async def opened(circuits: CircuitBreaker, *, is_open: bool = True) -> None:
    """Wait until the circuit of ``a/big`` is open, or closed."""
    with anyio.fail_after(60):
        while (circuits.open_until("a/big") is not None) is not is_open:  # noqa: ASYNC110  another process acts
            await anyio.sleep(0.01)


async def test_a_circuit_opens_and_closes_for_all_monitors(nats_server: EmbeddedServer) -> None:
    """Two failures in one monitor open the circuit in the other; a success there closes it here."""
    async with shared(nats_server) as one, shared(nats_server) as other:
        for _ in range(2):
            await one.record_failure("a/big", "unavailable", None, SETTINGS)
        await opened(other)
        await other.record_success("a/big")
        await opened(one, is_open=False)


async def test_one_monitor_sends_the_probe(nats_server: EmbeddedServer) -> None:
    """When the time of an open circuit is over, ten monitors ask and one may call."""
    async with shared(nats_server) as one, shared(nats_server) as other:
        for _ in range(2):
            await one.record_failure("a/big", "unavailable", None, SETTINGS)
        await opened(other)
        assert not await other.claim_probe("a/big", SETTINGS)
        await anyio.sleep(3.1)
        claims: list[bool] = []

        async def claim(circuits: CircuitBreaker) -> None:
            claims.append(await circuits.claim_probe("a/big", SETTINGS))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(claim, one if number % 2 else other)
        assert sum(claims) == 1


async def test_a_monitor_that_starts_later_knows_the_open_circuits(nats_server: EmbeddedServer) -> None:
    """A restart does not call a model again that the others pass over."""
    lasting = FailoverSettings(open_after=1, open_seconds=600)
    async with shared(nats_server) as one:
        await one.record_failure("a/big", "authentication", None, lasting)
        async with shared(nats_server) as later:
            await opened(later)
            assert not await later.claim_probe("a/big", lasting)


@pytest.mark.parametrize("after", [1e9, 1e15, math.inf])
async def test_a_pause_without_bound_does_not_close_a_model_forever(after: float) -> None:
    """A vendor that asks for a pause of years is asked again within an hour."""
    circuits = CircuitBreaker()
    for _ in range(2):
        await circuits.record_failure("a/big", "rate_limited", after, SETTINGS)
    until = circuits.open_until("a/big")
    assert until is not None and until - datetime.now(UTC) <= timedelta(hours=1)


@pytest.mark.parametrize(
    "line", ["open_seconds = inf", "max_wait = 1e300", "attempts = 1000000000000000000000"]
)
def test_settings_without_bound_are_refused(line: str) -> None:
    """No circuit is open forever, and no call is repeated forever."""
    with pytest.raises(msgspec.ValidationError, match="<="):
        msgspec.convert(tomllib.loads(line), FailoverSettings)


async def test_without_a_bus_circuits_hold_in_the_process() -> None:
    """A bus that is away delays no model call."""
    circuits = CircuitBreaker()
    with anyio.fail_after(1):
        for _ in range(2):
            await circuits.record_failure("a/big", "unavailable", None, SETTINGS)
    assert circuits.open_until("a/big") is not None
    assert not await circuits.claim_probe("a/big", SETTINGS)
