"""Requests with keys of a pool: which key is sent, what happens when a vendor refuses one, and who is told to wait."""

import math
import os
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import anyio
import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message
from trunkline.api.model import (
    Finish,
    ModelError,
    ModelEvent,
    ModelFault,
    ModelRequest,
    ModelStatus,
    Text,
    Usage,
)
from trunkline_keys.key_pool import SharedKeyPool
from trunkline_keys.middleware import KeyMiddleware
from trunkline_keys.plugin import check_variables
from trunkline_keys.settings import KeysSettings, PoolSettings

pytestmark = pytest.mark.anyio

KEYS = ({"env": "POOL_KEY_1"}, {"env": "POOL_KEY_2"})
REQUEST = ModelRequest(messages=(Message(id="m", role="user", content="How is the sea?"),), adapter="a")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        monkeypatch.setenv(f"POOL_KEY_{number}", f"sk-canary-{number}")


def failed(fault: ModelFault, after: float | None = None) -> ModelError:
    return ModelError(ErrorCode.PROVIDER_ERROR, fault, "scripted", retry_after=after)


class Vendor:
    """Answers by the key that it gets: an error, or a text with the key's variable."""

    def __init__(self, faults: dict[str, ModelError] | None = None) -> None:
        self.faults = faults or {}
        self.asked: list[str] = []
        self.release = anyio.Event()
        self.slow = False

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request.key)
        if request.key in self.faults:
            raise self.faults[request.key]
        yield Text(request.key)
        if self.slow:
            await self.release.wait()
        yield Finish(usage=Usage(input_tokens=3, output_tokens=2))


def pooled(**settings: Any) -> tuple[KeyMiddleware, SharedKeyPool]:
    max_wait = settings.pop("max_wait", 5.0)
    section = msgspec.convert(
        {"pools": {"a": {"keys": KEYS, **settings}}, "max_wait": max_wait}, KeysSettings
    )
    pool = SharedKeyPool("a", section.pools["a"], section.max_wait)
    return KeyMiddleware(section, {"a": pool}), pool


async def answer(
    middleware: KeyMiddleware, vendor: Vendor, request: ModelRequest = REQUEST
) -> list[ModelEvent]:
    async with aclosing(middleware(request, vendor.ask)) as events:  # type: ignore[type-var]
        return [event async for event in events]


async def test_requests_take_the_keys_in_turn() -> None:
    """Each request names the variable of its key, never the key. Another adapter is left alone."""
    (middleware, pool), vendor = pooled(), Vendor()
    for _ in range(4):
        await answer(middleware, vendor)
    assert vendor.asked == ["POOL_KEY_1", "POOL_KEY_2"] * 2
    other = msgspec.structs.replace(REQUEST, adapter="b")
    assert (await answer(middleware, vendor, other))[0] == Text("")
    assert "canary" not in msgspec.json.encode(pool.state).decode() and "POOL_KEY" not in repr(pool.state)


@pytest.mark.parametrize(("fault", "after"), [("authentication", None), ("rate_limited", 7.0)])
async def test_a_key_that_the_vendor_refuses_or_limits_rests(fault: ModelFault, after: float | None) -> None:
    """The same request is answered with another key, and later ones do not try the first."""
    (middleware, pool), vendor = pooled(), Vendor({"POOL_KEY_1": failed(fault, after)})
    assert (await answer(middleware, vendor))[0] == Text("POOL_KEY_2")
    await answer(middleware, vendor)
    assert vendor.asked == ["POOL_KEY_1", "POOL_KEY_2", "POOL_KEY_2"]
    resting = next(key for key in pool.state.keys if key.fault)
    assert resting.fault == fault
    left = resting.rests_until - pool.state.changed_at.timestamp()
    assert (6 < left <= 7) if after else left > 3_000


async def test_when_every_key_is_refused_the_error_says_so() -> None:
    """The vendor's own error comes first; a later call fails at once, without a request and without a key's text."""
    refused = failed("authentication")
    (middleware, _), vendor = pooled(), Vendor({"POOL_KEY_1": refused, "POOL_KEY_2": refused})
    with pytest.raises(ModelError) as first:
        await answer(middleware, vendor)
    assert first.value.fault == "authentication" and len(vendor.asked) == 2
    with pytest.raises(ModelError) as second:
        await answer(middleware, vendor)
    assert second.value.fault == "authentication" and len(vendor.asked) == 2
    assert "2 keys" in second.value.detail and "canary" not in str(second.value)


async def test_when_every_key_is_limited_the_error_says_for_how_long() -> None:
    """Failover waits for this time, or calls a fallback."""
    faults = {"POOL_KEY_1": failed("rate_limited", 40.0), "POOL_KEY_2": failed("rate_limited", 90.0)}
    (middleware, _), vendor = pooled(), Vendor(faults)
    with pytest.raises(ModelError):
        await answer(middleware, vendor)
    with pytest.raises(ModelError) as again:
        await answer(middleware, vendor)
    assert again.value.fault == "rate_limited" and 30 < (again.value.retry_after or 0) <= 40
    assert len(vendor.asked) == 2


async def test_an_answer_that_began_is_not_repeated_with_another_key() -> None:
    """Its error is raised; the key still rests."""

    async def breaks(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Text("half")
        raise failed("rate_limited", 5.0)

    middleware, pool = pooled()
    got: list[ModelEvent] = []
    with pytest.raises(ModelError):
        async with aclosing(middleware(REQUEST, breaks)) as events:  # type: ignore[type-var]
            async for event in events:
                got.append(event)
    assert got == [Text("half")]
    assert [key.fault for key in pool.state.keys] == ["rate_limited", ""]


async def test_a_request_waits_for_a_free_key_and_says_so() -> None:
    """In the order of arrival. The share of a cancelled request returns at once."""
    (middleware, pool), vendor = pooled(concurrent=1, max_wait=30.0), Vendor()
    vendor.slow = True
    got: list[list[ModelEvent]] = []

    async def collect() -> None:
        got.append(await answer(middleware, vendor))

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(collect)
        await _until(lambda: len(vendor.asked) == 2)
        with anyio.move_on_after(0.3) as waiting:
            await answer(middleware, vendor)
        assert waiting.cancelled_caught and len(vendor.asked) == 2
        tasks.start_soon(collect)
        await anyio.sleep(1.3)  # longer than TOLD_AFTER
        vendor.release.set()
    assert len(got) == 3 and got[2][0] == ModelStatus(
        "Waiting for a free key of a: its limits are used up for now."
    )
    assert not any(key.running for key in pool.state.keys) and not pool.state.waiting


async def test_waiting_has_a_bound() -> None:
    """A limit that is used up for longer fails at once with the time until it is not."""
    (middleware, _), vendor = pooled(requests_per_minute=1, max_wait=1.0), Vendor()
    for _ in range(2):
        await answer(middleware, vendor)
    with anyio.fail_after(0.5), pytest.raises(ModelError) as late:
        await answer(middleware, vendor)
    assert late.value.fault == "rate_limited" and 55 < (late.value.retry_after or 0) <= 61
    assert "plugins.keys.max_wait" in late.value.detail


async def test_tokens_are_counted_as_the_vendor_counts_them() -> None:
    """The estimate before the answer is replaced by the usage after it."""
    (middleware, pool), vendor = pooled(tokens_per_minute=100_000), Vendor()
    await answer(middleware, vendor)
    assert sum(key.tokens for key in pool.state.keys) == 5


async def test_a_pool_without_a_key_is_an_error_that_names_the_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable that is not set is passed over as long as another one is, and doctor names it."""
    middleware, vendor = pooled()[0], Vendor()
    monkeypatch.delenv("POOL_KEY_1")
    assert (await answer(middleware, vendor))[0] == Text("POOL_KEY_2")
    section = KeysSettings(pools={"a": _settings()})
    assert "POOL_KEY_1" in repr(check_variables(section, os.environ))
    monkeypatch.delenv("POOL_KEY_2")
    with pytest.raises(ModelError) as missing:
        await answer(middleware, vendor)
    assert "POOL_KEY_1, POOL_KEY_2" in missing.value.detail


def _settings() -> PoolSettings:
    return msgspec.convert({"keys": KEYS}, PoolSettings)


def test_a_variable_that_is_named_twice_is_refused() -> None:
    """One key would be counted as two."""
    with pytest.raises(ConfigError, match="twice"):
        KeysSettings(pools={"a": msgspec.convert({"keys": (KEYS[0], KEYS[0])}, PoolSettings)})


@pytest.mark.parametrize(
    "line",
    [
        "max_wait = inf",
        "limited_rest = inf",
        "refused_rest = 1e300",
        "pools.a.concurrent = 1000000000000000000000",
    ],
)
def test_numbers_without_bound_are_refused(line: str) -> None:
    """A key that rests forever could not be stored on the bus."""
    with pytest.raises(msgspec.ValidationError, match="<="):
        msgspec.convert(tomllib.loads(line), KeysSettings)


@pytest.mark.parametrize("after", [0.0, -5.0, 0.000_001, 0.02])
async def test_a_storm_of_short_pauses_ends(after: float) -> None:
    """A vendor that limits every key and names a pause of nothing is asked once with each key. Failover decides what
    follows."""
    limits = failed("rate_limited", after)
    (middleware, _), vendor = pooled(), Vendor({"POOL_KEY_1": limits, "POOL_KEY_2": limits})
    with anyio.fail_after(20), pytest.raises(ModelError) as raised:
        await answer(middleware, vendor)
    assert raised.value.fault == "rate_limited" and sorted(vendor.asked) == ["POOL_KEY_1", "POOL_KEY_2"]


@pytest.mark.parametrize("after", [math.inf, 1e300])
async def test_no_key_rests_forever(after: float) -> None:
    """A pause without bound counts as a day."""
    (middleware, pool), vendor = pooled(), Vendor({"POOL_KEY_1": failed("rate_limited", after)})
    assert (await answer(middleware, vendor))[0] == Text("POOL_KEY_2")
    resting = next(key for key in pool.state.keys if key.fault)
    assert resting.rests_until - pool.state.changed_at.timestamp() <= 86_400.0


async def _until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():  # noqa: ASYNC110
            await anyio.sleep(0.01)
