"""Fallbacks in turns of a real platform: the answer, its trace and its price."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest

import trunkline
from trunkline import ErrorCode
from trunkline.api.model import Finish, ModelAdapter, ModelError, ModelEvent, ModelRequest, Text, Usage
from trunkline.cli.checks.check import CheckContext
from trunkline.cli.checks.turn_checks import models_circuits
from trunkline.runtime.overview import OverviewReader
from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio


class Failing(ModelAdapter):
    """A vendor that is down."""

    name = "down"
    vendor = "down"

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.calls += 1
        raise ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", "scripted")
        yield


class Working(ModelAdapter):
    """A vendor that answers."""

    name = "up"
    vendor = "up"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Text(f"{request.model} says hello")
        yield Finish(usage=Usage(input_tokens=1_000, output_tokens=10), model=f"{request.model}-2026")


class Vendors:
    """A plugin with both."""

    def __init__(self) -> None:
        self.down = Failing()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.down, Working()]


async def test_a_failing_provider_ends_no_conversation() -> None:
    """The fallback answers; the cost is by its price, and later turns do not wait for the provider that is down.

    ``top`` and ``doctor`` show the circuit.
    """
    vendors = Vendors()
    config = {
        "runtime.provider_adapter": "down",
        "plugins.failover": {
            "attempts": 2,
            "first_delay": 0.01,
            "open_after": 2,
            "fallbacks": {"*": ["up/small"]},
        },
        "models.prices": {
            "up/small": {"input": 2.0, "output": 10.0},
            "down": {"input": 500.0, "output": 500.0},
        },
    }
    async with platform(plugins=[vendors], config=config) as running:
        first = await running.say("hello")
        again = await running.say("again", conversation=first.accepted.conversation)
        view = await running.gateway.context(first.accepted.conversation)
        (circuit,) = (await OverviewReader(running.bus).read()).circuits
        context = CheckContext(running.config, running.home, False, AsyncExitStack(), bus=running.bus)
        report = await models_circuits(context)
    assert first.text == again.text == "small says hello"
    assert first.ended.cost == 1_000 * 2 + 10 * 10
    assert first.ended.answered_by == again.ended.answered_by == "up/small"
    assert view.model == "up/small"
    assert vendors.down.calls == 2
    assert (circuit.model, circuit.failures, circuit.fault) == ("down", 2, "unavailable")
    assert report is not None and report.status == "warning" and "down (unavailable)" in report.summary
