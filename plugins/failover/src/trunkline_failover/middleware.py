"""Model middleware: another attempt, then another model, until the first event of an answer arrives."""

import logging
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
from msgspec.structs import replace
from opentelemetry import trace

from trunkline import ErrorCode
from trunkline.api.model import (
    AskModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelStatus,
)
from trunkline_failover.circuits import CircuitBreaker
from trunkline_failover.settings import FailoverSettings

log = logging.getLogger(__name__)

UNCOUNTED = frozenset({"refused", "over_budget", "wrong_format"})
"""Faults that say nothing about whether the vendor works."""

RETRIED = frozenset({"rate_limited", "unavailable", "timeout", "interrupted", "bad_response"})
"""Faults after which the same model may answer the same request. ``authentication`` and ``refused`` stay as they are,
so only another model can help."""

NEVER = datetime.max.replace(tzinfo=UTC)
"""Later than any circuit closes."""

LASTING = frozenset({"authentication", "refused"})
"""Faults that last until a person changes a setting: a refused key, or a model that the vendor does not have."""

RETRY_EVENT = "trunkline.model.retry"
FALLBACK_EVENT = "trunkline.model.fallback"
"""Names of events in the span of the model call."""


@dataclass(frozen=True, slots=True)
class FallbackModel:
    """A model that may answer the request."""

    adapter: str
    model: str

    @classmethod
    def parse(cls, label: str) -> "FallbackModel":
        """Return the model of ``adapter/model`` or ``adapter``."""
        adapter, _, model = label.partition("/")
        return cls(adapter, model)

    @property
    def label(self) -> str:
        """``adapter/model``, or ``adapter`` for its default model."""
        return f"{self.adapter}/{self.model}" if self.model else self.adapter


class FailoverMiddleware:
    """Repeats a model call that failed before its first event, and then calls the fallbacks.

    Nothing that a person saw is repeated: after the first event every error is raised. A request that exceeds the
    context window is never repeated, because other attempts would exceed it too.
    """

    def __init__(
        self, settings: FailoverSettings, circuits: CircuitBreaker, rng: random.Random | None = None
    ) -> None:
        self._settings = settings
        self._circuits = circuits
        self._random = rng or random.Random()

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the first model that answers. If none does, raise the ModelError of the requested model,
        or of the first fallback when the requested model's circuit is open. Its detail names each
        fallback that a setting keeps from answering, such as a wrong name, and so does the log."""
        deadline = anyio.current_time() + self._settings.max_wait
        failure: ModelError | None = None
        async for model in self._permitted(request):
            is_fallback = (model.adapter, model.model) != (request.adapter, request.model)
            if is_fallback:
                _note(FALLBACK_EVENT, model=model.label)
            target = replace(request, adapter=model.adapter, model=model.model)
            began = False
            try:
                async with aclosing(self._attempts(target, model, proceed, deadline)) as events:  # type: ignore[type-var]
                    async for event in events:
                        began = began or not isinstance(event, ModelStatus)
                        yield event
                return
            except ModelError as error:
                if began or error.code is not ErrorCode.PROVIDER_ERROR or error.fault == "over_budget":
                    raise
                failure = failure or error
                if is_fallback and error.fault in LASTING:
                    failure = _with_fallback(failure, model, error)
        assert failure is not None  # at least one model is permitted
        raise failure

    async def _permitted(self, request: ModelRequest) -> AsyncIterator[FallbackModel]:
        """Yield the models to call, in order: those whose circuit permits a call. If none does, yield the model whose
        circuit closes first, so that no call fails without an attempt."""
        first = FallbackModel(request.adapter, request.model)
        others = map(FallbackModel.parse, self._settings.fallbacks_of(first.adapter, first.model))
        chain = list(dict.fromkeys((first, *others)))
        none_permitted = True
        for model in chain:
            if len(chain) == 1 or await self._circuits.claim_probe(model.label, self._settings):
                none_permitted = False
                yield model
        if none_permitted:
            yield min(chain, key=lambda model: self._circuits.open_until(model.label) or NEVER)

    async def _attempts(
        self, request: ModelRequest, model: FallbackModel, proceed: AskModel, deadline: float
    ) -> AsyncIterator[ModelEvent]:
        """Yield the events of one model. Raise the last attempt's ModelError."""
        for attempt in range(1, self._settings.attempts + 1):
            began = False
            try:
                async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
                    async for event in events:
                        began = began or not isinstance(event, ModelStatus)
                        yield event
            except ModelError as error:
                await self._count(model, error)
                pause = self._pause(attempt, error)
                too_late = anyio.current_time() + pause > deadline
                final = attempt == self._settings.attempts or error.fault not in RETRIED or too_late
                if began or final or error.code is not ErrorCode.PROVIDER_ERROR:
                    raise
                _note(RETRY_EVENT, model=model.label, fault=error.fault, pause=pause)
                await anyio.sleep(pause)
            else:
                await self._circuits.record_success(model.label)
                return

    async def _count(self, model: FallbackModel, error: ModelError) -> None:
        """Count the failure in the model's circuit, unless the request is at fault, or the owner's budget."""
        if error.code is ErrorCode.PROVIDER_ERROR and error.fault not in UNCOUNTED:
            await self._circuits.record_failure(model.label, error.fault, error.retry_after, self._settings)

    def _pause(self, attempt: int, error: ModelError) -> float:
        """Return the seconds before the next attempt. Jitter keeps many workers from calling at the same moment."""
        longest = min(self._settings.max_delay, self._settings.first_delay * 2.0 ** (attempt - 1))
        return max(error.retry_after or 0.0, longest * self._random.uniform(0.5, 1.0))


def _with_fallback(failure: ModelError, fallback: FallbackModel, error: ModelError) -> ModelError:
    """Log a fallback that fails until a person changes a setting, and return the failure with it in its detail."""
    told = f"the fallback {fallback.label} of [plugins.failover] fails: {error.detail or error.fault}"
    log.warning(told)
    detail = told if failure is error else f"{failure.detail.rstrip('. ')}; {told}"
    return ModelError(failure.code, failure.fault, detail, retry_after=failure.retry_after)


def _note(event: str, **attributes: str | float) -> None:
    trace.get_current_span().add_event(
        event, {f"trunkline.{name}": value for name, value in attributes.items()}
    )
