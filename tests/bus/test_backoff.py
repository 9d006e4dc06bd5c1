"""The pause between attempts, without waiting for it."""

import anyio
import pytest

from trunkline_bus.backoff import Backoff

pytestmark = pytest.mark.anyio


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each sleep, which returns at once."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    return pauses


async def test_the_pause_doubles_up_to_the_longest(slept: list[float]) -> None:
    backoff = Backoff(0.2, 1.0)
    for _ in range(5):
        await backoff.sleep()
    assert slept == [0.2, 0.4, 0.8, 1.0, 1.0]


async def test_a_reset_begins_with_the_first_pause(slept: list[float]) -> None:
    backoff = Backoff(0.5, 5.0)
    await backoff.sleep()
    await backoff.sleep()
    backoff.reset()
    assert backoff.delay == 0.5
    await backoff.sleep()
    assert slept == [0.5, 1.0, 0.5]


def test_advance_returns_the_pause_and_doubles_it() -> None:
    backoff = Backoff(0.5, 1.5)
    assert [backoff.advance() for _ in range(4)] == [0.5, 1.0, 1.5, 1.5]
    assert backoff.delay == 1.5


async def test_a_wait_ends_when_the_event_is_set_and_counts_as_a_pause() -> None:
    backoff, stop = Backoff(60.0, 120.0), anyio.Event()
    stop.set()
    with anyio.fail_after(5):
        await backoff.wait(stop)
    assert backoff.delay == 120.0


async def test_a_wait_ends_after_the_pause_when_the_event_stays_unset() -> None:
    backoff = Backoff(0.01, 1.0)
    with anyio.fail_after(5):
        await backoff.wait(anyio.Event())
    assert backoff.delay == 0.02
