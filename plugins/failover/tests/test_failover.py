"""Retries and fallbacks, driven by the faults that models have. Time stands still: pauses are recorded."""

import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message, ToolCall
from trunkline.api.model import (
    Call,
    Finish,
    ModelError,
    ModelEvent,
    ModelFault,
    ModelRequest,
    ModelStatus,
    Reasoning,
    Text,
)
from trunkline_failover.circuits import CircuitBreaker
from trunkline_failover.middleware import RETRIED, FailoverMiddleware
from trunkline_failover.settings import FailoverSettings

pytestmark = pytest.mark.anyio

Script = dict[str, list[Sequence[ModelEvent | ModelError]]]
DONE = Finish()
ANSWER = (Text("Calm."), DONE)


def failed(fault: ModelFault, *, after: float | None = None) -> ModelError:
    return ModelError(ErrorCode.PROVIDER_ERROR, fault, "scripted", retry_after=after)


class Models:
    """Answers by a script for each ``adapter/model``, one entry for each call."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.called: list[str] = []

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        label = f"{request.adapter}/{request.model}" if request.model else request.adapter
        self.called.append(label)
        for step in self.script[label].pop(0):
            if isinstance(step, ModelError):
                raise step
            yield step


@pytest.fixture
async def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which do not happen."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    began = anyio.current_time()
    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(anyio, "current_time", lambda: began + sum(made))
    return made


REQUEST = ModelRequest(
    messages=(Message(id="msg_1", role="user", content="How is the sea?"),), adapter="a", model="big"
)


async def answer(
    script: Script, circuits: CircuitBreaker | None = None, request: ModelRequest = REQUEST, **settings: Any
) -> tuple[list[ModelEvent], list[str]]:
    """Return the events of one call and the models that were called, in order."""
    models = Models(script)
    middleware = FailoverMiddleware(
        FailoverSettings(**settings), circuits or CircuitBreaker(), random.Random(1)
    )
    return [event async for event in middleware(request, models.ask)], models.called


@pytest.mark.parametrize("fault", sorted(RETRIED))
async def test_a_passing_fault_is_retried(fault: ModelFault, pauses: list[float]) -> None:
    """The same model gets the same request again."""
    events, called = await answer({"a/big": [[failed(fault)], [failed(fault)], ANSWER]})
    assert events == list(ANSWER) and called == ["a/big"] * 3
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0


@pytest.mark.parametrize("fault", ["authentication", "refused"])
async def test_a_lasting_fault_is_not_retried(fault: ModelFault, pauses: list[float]) -> None:
    """A wrong key stays wrong."""
    with pytest.raises(ModelError) as raised:
        await answer({"a/big": [[failed(fault)], ANSWER]})
    assert raised.value.fault == fault and pauses == []


async def test_the_last_error_is_raised(pauses: list[float]) -> None:
    """After the last attempt the caller gets the reason."""
    with pytest.raises(ModelError) as raised:
        await answer({"a/big": [[failed("timeout")], [failed("timeout")], [failed("rate_limited")]]})
    assert raised.value.fault == "rate_limited" and len(pauses) == 2


@pytest.mark.parametrize(
    "begun",
    [Text("Ca"), Reasoning("Hm"), Call(ToolCall(id="1", name="look"))],
    ids=["text", "reasoning", "call"],
)
async def test_nothing_is_repeated_after_the_first_event(begun: ModelEvent, pauses: list[float]) -> None:
    """A person never sees an answer twice (C42), and no tool call is made twice."""
    script: Script = {"a/big": [[begun, failed("interrupted")], ANSWER], "b": [ANSWER]}
    seen: list[ModelEvent] = []
    models = Models(script)
    middleware = FailoverMiddleware(FailoverSettings(fallbacks={"*": ("b",)}), CircuitBreaker())
    with pytest.raises(ModelError):
        async for event in middleware(REQUEST, models.ask):
            seen.append(event)
    assert seen == [begun] and models.called == ["a/big"] and pauses == []


async def test_the_vendor_decides_the_pause(pauses: list[float]) -> None:
    """``Retry-After`` holds when it is longer than the pause of the settings."""
    await answer({"a/big": [[failed("rate_limited", after=7.0)], ANSWER]})
    assert pauses == [7.0]


async def test_a_pause_beyond_the_limit_goes_to_the_fallback(pauses: list[float]) -> None:
    """Nobody waits an hour for a rate limit while another model can answer."""
    events, called = await answer(
        {"a/big": [[failed("rate_limited", after=3_600.0)]], "b/small": [ANSWER]},
        fallbacks={"a/big": ("b/small",)},
    )
    assert events == list(ANSWER) and called == ["a/big", "b/small"] and pauses == []


async def test_pauses_together_keep_to_the_limit(pauses: list[float]) -> None:
    """``max_wait`` bounds the time of repetitions, of fallbacks too; the requested model's error is raised."""
    script: Script = {"a/big": [[failed("unavailable")]] * 9, "b": [[failed("unavailable")]] * 9}
    with pytest.raises(ModelError):
        await answer(
            script, fallbacks={"*": ("b",)}, attempts=9, first_delay=8.0, max_delay=8.0, max_wait=20.0
        )
    assert sum(pauses) <= 20.0


async def test_an_empty_answer_is_retried(pauses: list[float]) -> None:
    """MN-F10: the plugin answers reports it as a bad response. A status shown before it is no answer."""
    empty = [ModelStatus("waiting"), failed("bad_response")]
    events, called = await answer({"a/big": [empty, ANSWER]})
    assert events == [ModelStatus("waiting"), *ANSWER] and called == ["a/big"] * 2


@pytest.mark.parametrize(
    ("fallbacks", "called"),
    [
        ({"a/big": ("b",), "a": ("c",), "*": ("d",)}, "b"),
        ({"a": ("c",), "*": ("d",)}, "c"),
        ({"*": ("a/big", "d")}, "d"),
    ],
)
async def test_the_most_specific_fallbacks_hold(
    fallbacks: dict[str, tuple[str, ...]], called: str, pauses: list[float]
) -> None:
    """The model's own list, else its adapter's, else that of every model."""
    script: Script = {"a/big": [[failed("authentication")]], "b": [ANSWER], "c": [ANSWER], "d": [ANSWER]}
    assert (await answer(script, fallbacks=fallbacks))[1] == ["a/big", called]


async def test_the_requested_models_error_is_raised(pauses: list[float]) -> None:
    """The person chose that model, and the reason names it."""
    with pytest.raises(ModelError) as raised:
        await answer(
            {"a/big": [[failed("authentication")]], "b": [[failed("refused")]]}, fallbacks={"a": ("b",)}
        )
    assert raised.value.fault == "authentication"


async def test_a_fallback_with_a_wrong_name_is_told(
    pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """If no other model answers, the error says what is wrong with the fallback, and where it is named. If one does,
    the log says so."""
    unknown = ModelError(
        ErrorCode.PROVIDER_ERROR, "refused", "HTTP 404: no such model; check model in [adapters.b]"
    )
    script: Script = {"a/big": [[failed("authentication")]] * 2, "b/smal": [[unknown]] * 2, "c": [ANSWER]}
    with pytest.raises(ModelError) as raised:
        await answer(script, fallbacks={"a": ("b/smal",)})
    told = f"the fallback b/smal of [plugins.failover] fails: {unknown.detail}"
    assert raised.value.detail == f"scripted; {told}" and raised.value.fault == "authentication"
    caplog.clear()
    assert (await answer(script, fallbacks={"a": ("b/smal", "c")}))[0] == list(ANSWER)
    assert told in caplog.text


async def test_a_model_that_was_silent_for_long_is_not_retried(pauses: list[float]) -> None:
    """The time of a failed attempt counts, so nobody waits several times for a model that hangs."""
    models = Models({"a/big": [[failed("timeout")]], "b": [ANSWER]})

    async def slow(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        pauses.append(120.0 if request.adapter == "a" else 0.0)
        async for event in models.ask(request):
            yield event

    middleware = FailoverMiddleware(FailoverSettings(fallbacks={"*": ("b",)}), CircuitBreaker())
    assert [event async for event in middleware(REQUEST, slow)] == list(ANSWER)
    assert models.called == ["a/big", "b"]


async def test_every_fallback_is_called_in_order(pauses: list[float]) -> None:
    """The chain crosses vendors."""
    script: Script = {"a/big": [[failed("refused")]], "b/x": [[failed("authentication")]], "c/y": [ANSWER]}
    assert (await answer(script, fallbacks={"a": ("b/x", "c/y")}))[1] == ["a/big", "b/x", "c/y"]


async def test_a_request_that_is_too_long_goes_nowhere_else(pauses: list[float]) -> None:
    """Compaction helps, another attempt does not."""
    overflow = ModelError(ErrorCode.CONTEXT_OVERFLOW, "refused", "too long")
    models = Models({"a/big": [[overflow]], "b": [ANSWER]})
    middleware = FailoverMiddleware(FailoverSettings(fallbacks={"*": ("b",)}), CircuitBreaker())
    with pytest.raises(ModelError) as raised:
        _ = [event async for event in middleware(REQUEST, models.ask)]
    assert raised.value is overflow and models.called == ["a/big"]


async def test_an_open_circuit_is_passed_over(pauses: list[float]) -> None:
    """After ``open_after`` failures the fallback is called at once."""
    circuits = CircuitBreaker()
    settings: dict[str, Any] = {"fallbacks": {"*": ("b",)}, "attempts": 2, "open_after": 2}
    await answer({"a/big": [[failed("unavailable")]] * 2, "b": [ANSWER]}, circuits, **settings)
    events, called = await answer({"b": [ANSWER]}, circuits, **settings)
    assert events == list(ANSWER) and called == ["b"]


async def test_without_a_fallback_an_open_circuit_is_called(pauses: list[float]) -> None:
    """A circuit only chooses between models; alone, a model is always asked."""
    circuits = CircuitBreaker()
    with pytest.raises(ModelError):
        await answer({"a/big": [[failed("unavailable")]] * 2}, circuits, attempts=2, open_after=1)
    assert await answer({"a/big": [ANSWER]}, circuits, attempts=2, open_after=1) == (list(ANSWER), ["a/big"])


async def test_one_success_closes_the_circuit(pauses: list[float]) -> None:
    """The probe after ``open_seconds`` answers, and the model is the first choice again."""
    circuits = CircuitBreaker()
    settings: dict[str, Any] = {
        "fallbacks": {"*": ("b",)},
        "attempts": 1,
        "open_after": 1,
        "open_seconds": 0.000_1,
    }
    await answer({"a/big": [[failed("timeout")]], "b": [ANSWER]}, circuits, **settings)
    assert circuits.open_until("a/big") is not None
    time.sleep(0.02)  # noqa: ASYNC251 - anyio.sleep is replaced here
    assert (await answer({"a/big": [ANSWER]}, circuits, **settings))[1] == ["a/big"]
    assert circuits.open_until("a/big") is None


async def test_a_refused_request_opens_no_circuit(pauses: list[float]) -> None:
    """The request is at fault, not the model."""
    circuits = CircuitBreaker()
    await answer(
        {"a/big": [[failed("refused")]], "b": [ANSWER]}, circuits, fallbacks={"*": ("b",)}, open_after=1
    )
    assert circuits.open_until("a/big") is None


@pytest.mark.parametrize(
    "settings", [{"attempts": 0}, {"max_wait": 0}, {"fallbacks": {"a": ["a"]}}, {"retries": 3}]
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    """A typing error in the section stops the start, with the line."""
    with pytest.raises((msgspec.ValidationError, ConfigError)):
        msgspec.convert(settings, FailoverSettings)
