"""Answers single questions to a model over the bus (``model.complete``), for tools and background work.

It uses the same adapters, model choice, middleware, limits and span as a turn's model call; there is no
journal, no feed and no tools.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from opentelemetry import trace

from trunkline.contracts.blocks.model_choice import VISION
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.messages import NO_VISION_MODEL, Complete, Completion
from trunkline.contracts.models.prices import Rate
from trunkline.contracts.turns.feed_messages import FeedEvent
from trunkline.contracts.turns.journal_messages import ModelCallFailed, ModelCallFinished
from trunkline.errors import ErrorCode, ModelError
from trunkline.telemetry import semconv
from trunkline.workers.monitor.block_profile import BlockProfile
from trunkline.workers.monitor.feed_writer import TextStream
from trunkline.workers.monitor.live_calls import Deadline, LiveCalls, refused
from trunkline.workers.monitor.model_call import ModelCallConfig, ModelCaller
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline_bus import BusError, Refusal, Request

log = logging.getLogger(__name__)

_VISION_HINT = (
    'A person can name one that does, as in models.vision = "openai/gpt-4.1-mini": in the block\'s block.toml, or in '
    "preferences.toml for all blocks."
)

FLUSH_SECONDS = 3_600.0
"""Seconds between two flushes of text. The text of a completion is not streamed to anyone."""

MAX_REMEMBERED_MODELS = 100
"""The number of model names that are remembered, so that callers cannot fill log and memory."""


class CompletionHandler:
    """Runs the completions of this monitor. ``profile`` returns a block's profile; questions without a block use
    ``block``."""

    def __init__(
        self,
        models: ModelRegistry,
        profile: Callable[[str], Awaitable[BlockProfile]],
        block: str,
        call_config: ModelCallConfig,
    ) -> None:
        self._models = models
        self._profile = profile
        self._block = block
        self._call_config = call_config
        self._calls = LiveCalls()
        self.drain = self._calls.drain
        self.stop = self._calls.stop
        self._answering_models: dict[str, str] = {}
        """The model that answered last, for choices that leave the model to the adapter. The next call is priced by
        it."""

    async def complete(self, request: Request[Complete]) -> AsyncIterator[Completion]:
        """Yield the answer. When the caller disconnects, the bus cancels this and with it the call to the
        provider.

        Raises:
          Refusal: with a code; see ``Completer``.
        """
        with self._calls.counted():
            yield await self._calls.step(lambda: self._call_model(request), Deadline(request.data.timeout))

    async def _call_model(self, request: Request[Complete]) -> Completion:
        question, block = request.data, request.envelope.block or self._block
        choice = await self._choose(question, block)
        rate = self._call_config.prices.find_rate(
            choice.label, self._answering_models.get(choice.label, choice.label)
        )
        model_request = ModelRequest(
            messages=question.messages,
            model=choice.model,
            max_tokens=_token_limit(question, rate),
            temperature=question.temperature,
            block=block,
            conversation=request.envelope.conversation or "",
            turn=request.envelope.turn or "",
            budget_turn=question.budget_turn,
            actor=question.actor,
            purpose=question.purpose,
            reasoning=question.reasoning,
            adapter=choice.adapter.name,
        )
        caller = ModelCaller(self._models.ask(choice), choice, self._call_config)
        try:
            entry = await caller.call(
                model_request, 0, TextStream(_DiscardingSink(), 0, FLUSH_SECONDS), set()
            )
        except BusError as error:
            log.warning("a completion for block %s was not sent: %s", block, error)
            raise refused(ErrorCode.ENGINE_UNAVAILABLE) from error
        if isinstance(entry, ModelCallFailed):
            raise Refusal(entry.code, entry.detail) if entry.fault == "over_budget" else refused(entry.code)
        return self._completion(question, choice, caller, entry)

    async def _choose(self, question: Complete, block: str) -> SelectedModel:
        try:
            profile = await self._profile(block)
            if any(message.images for message in question.messages):
                return self._choose_vision_model(question, profile)
            return self._models.choose(profile.preferred_model(question.model, question.purpose))
        except BusError as error:
            log.warning("a completion for block %s failed: %s", block, error)
            raise refused(ErrorCode.ENGINE_UNAVAILABLE) from error
        except ModelError as error:
            log.warning("a completion for block %s has no model: %s", block, error)
            raise refused(error.code) from error

    def _choose_vision_model(self, question: Complete, profile: BlockProfile) -> SelectedModel:
        """Return the model that the settings or the question name for pictures. Not every model reads pictures, and
        adapters do not report which models do."""
        name = profile.preferred_model(question.model, VISION)
        if name is None:
            raise Refusal(NO_VISION_MODEL, f"No vision model is configured. {_VISION_HINT}")
        choice = self._models.choose(name)
        if not choice.adapter.sees:
            reason = f"The vision model {name} cannot be used: the adapter {choice.adapter.name} takes no pictures."
            raise Refusal(NO_VISION_MODEL, f"{reason} {_VISION_HINT}")
        return choice

    def _completion(
        self, question: Complete, choice: SelectedModel, caller: ModelCaller, entry: ModelCallFinished
    ) -> Completion:
        rate = self._call_config.prices.find_rate(*caller.labels)
        name = caller.labels[1]
        if caller.source.adapter == choice.adapter.name:
            self._remember_model(choice, name)
        cost = entry.cost or 0
        trace.get_current_span().set_attributes({semconv.COST: cost, semconv.PURPOSE: question.purpose})
        return Completion(
            text=entry.text,
            adapter=caller.source.adapter,
            model=caller.model,
            purpose=question.purpose,
            usage=entry.usage,
            cost=cost,
            price=rate.name if rate is not None else "",
            finish_reason=entry.finish_reason,
        )

    def _remember_model(self, choice: SelectedModel, name: str) -> None:
        if not choice.model and len(self._answering_models) < MAX_REMEMBERED_MODELS:
            self._answering_models[choice.label] = name


class _DiscardingSink:
    """A sink for the text of completions, which has no readers."""

    async def emit(self, *events: FeedEvent) -> None:
        """Discard the events."""


def _token_limit(question: Complete, rate: Rate | None) -> int | None:
    """Return the largest number of tokens of the answer. Raises Refusal when the question alone costs too
    much."""
    if question.max_cost is None or rate is None:
        return question.max_tokens
    affordable = rate.affordable_tokens(question.messages, question.max_cost)
    if affordable is None:
        return question.max_tokens
    if affordable < 1:
        raise Refusal(
            ErrorCode.OVER_BUDGET, f"The question alone could cost more than {question.max_cost} micro-USD."
        )
    return affordable if question.max_tokens is None else min(affordable, question.max_tokens)
