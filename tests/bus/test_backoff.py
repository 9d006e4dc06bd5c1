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
