"""Model middleware: each request gets a key of its adapter's pool, and waits until one is free."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from msgspec.structs import replace

from trunkline import ErrorCode, new_id
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelStatus,
    estimate_input_tokens,
)
from trunkline_keys.key_pool import KeyLease, SharedKeyPool
from trunkline_keys.settings import KeysSettings

SHORTEST_REST, LONGEST_REST = 1.0, 86_400.0
"""Bounds in seconds of the rest that a vendor names. A shorter one would let a storm of refusals go on, and a longer
one would take a key away for good."""


class KeyMiddleware:
    """Sends each request with a key that is free. A key that the vendor limits or refuses rests, and the request is
    sent with another one if nothing of an answer arrived.
    """

    each_request = True

    def __init__(self, settings: KeysSettings, pools: Mapping[str, SharedKeyPool]) -> None:
        self._settings = settings
        self._pools = pools

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the answer, and before them a status if a key is not free at once."""
        pool = self._pools.get(request.adapter)
        if pool is None or request.operation != "chat":  # the others use the adapter's own key
            async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
            return
        for others in reversed(range(len(self._settings.pools[request.adapter].variables))):
            try:
                async with aclosing(self._attempt(request, proceed, pool)) as events:  # type: ignore[type-var]
                    async for event in events:
                        yield event
                return
            except _KeyRestsError as resting:
                if not others:  # as many requests as there are keys
                    raise resting.error from None
                request = replace(request, id=new_id("request"))  # another request to the vendor

    async def _attempt(
        self, request: ModelRequest, proceed: AskModel, pool: SharedKeyPool
    ) -> AsyncIterator[ModelEvent]:
        """Yield the events of one request with one key. Raise _KeyRestsError if another key may answer it."""
        lease: KeyLease | None = None
        used, began = None, False
        try:
            async with aclosing(pool.acquire(self._expected_tokens(request))) as steps:  # type: ignore[type-var]
                async for step in steps:
                    if isinstance(step, ModelStatus):
                        yield step
                    else:
                        lease = step
            assert lease is not None  # acquire raises otherwise
            async with aclosing(proceed(replace(request, key=lease.variable))) as events:  # type: ignore[type-var]
                async for event in events:
                    began = began or not isinstance(event, ModelStatus)
                    if isinstance(event, Finish) and event.usage.input_tokens:
                        used = event.usage.input_tokens + event.usage.output_tokens
                    yield event
        except ModelError as error:
            if lease is not None and await self._rest(pool, lease, error) and not began:
                raise _KeyRestsError(error) from error
            raise
        finally:
            if lease is not None:
                await pool.release(lease, used)

    async def _rest(self, pool: SharedKeyPool, lease: KeyLease, error: ModelError) -> bool:
        """Let the key rest if the vendor limits or refuses it. Report whether another key can be used."""
        if error.code is not ErrorCode.PROVIDER_ERROR:
            return False
        match error.fault:
            case "rate_limited":
                named = error.retry_after or self._settings.limited_rest
                seconds = min(max(named, SHORTEST_REST), LONGEST_REST)
            case "authentication":
                seconds = self._settings.refused_rest
            case _:
                return False
        return await pool.rest(lease, seconds, error.fault)

    def _expected_tokens(self, request: ModelRequest) -> int:
        """Return the number of tokens that a request is counted with until its answer is complete."""
        pool = self._settings.pools[request.adapter]
        if pool.tokens_per_minute is None:
            return 0
        return estimate_input_tokens(request) + (request.max_tokens or pool.answer_tokens)


class _KeyRestsError(Exception):
    """The request failed with ``error`` because of its key, before any event, and another key is free."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(str(error))
        self.error = error
