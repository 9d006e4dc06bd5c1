"""One pool of keys: who gets which key, agreed with the other monitors on the bus."""

import hashlib
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import anyio

from trunkline import ErrorCode, new_id
from trunkline.api.bus import Bus, BusError, SequenceConflict, key_of
from trunkline.api.model import KEY_POOL_BUCKET, KeyPool, ModelError, ModelStatus
from trunkline_keys.pool_rules import (
    POLL_SECONDS,
    KeyDecision,
    KeyRequest,
    KeyUse,
    decide,
    leave,
    release,
    renew,
    rest,
)
from trunkline_keys.settings import PoolSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

BUS_SECONDS = 2.0
"""Seconds that a change of the pool may take. A request that cannot be counted on the bus waits and is not sent."""

TOLD_AFTER = 1.0
"""Seconds of waiting after which the person is told."""

MAX_PAUSE = 1.0
"""The longest pause between two requests for a key, so that the place in the line is renewed."""

DIGEST_CHARS = 12
OWN_KEY = "own"
"""The digest of the adapter's own key, which only the adapter knows."""


@dataclass(frozen=True, slots=True)
class KeyLease:
    """The right to send one request with a key. ``variable`` is the environment variable of the key, "" for the
    adapter's own.
    """

    variable: str
    use: KeyUse


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request of this process that waits for a key."""

    turn: anyio.Event = field(default_factory=anyio.Event)


class SharedKeyPool:
    """The keys of one adapter. The requests of a process wait in their order, and the processes take turns."""

    def __init__(
        self, adapter: str, settings: PoolSettings, max_wait: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.adapter = adapter
        self._settings = settings
        self._max_wait = max_wait
        self._clock = clock
        self._ticket = new_id("ticket")
        self._line: list[_Waiter] = []
        self._leases: set[str] = set()
        self._pool = _new_pool(adapter, clock())
        self._revision = 0
        self._writing = anyio.Lock(fast_acquire=True)
        self._bus: Bus | None = None

    def connect(self, bus: Bus | None) -> None:
        """Agree with other processes on this bus from now on; None agrees with nobody."""
        self._bus = bus

    @property
    def state(self) -> KeyPool:
        """The pool as this process knows it."""
        return self._pool

    async def acquire(self, tokens: int) -> AsyncIterator[ModelStatus | KeyLease]:
        """Yield a lease as soon as a key is free; before it at most one status, if that takes longer.

        Raises:
            ModelError: ``rate_limited``: no key becomes free in time. ``authentication``: the vendor refused all keys,
                or none is set.
        """
        waiter, began, told = _Waiter(), anyio.current_time(), False
        self._line.append(waiter)
        try:
            while True:
                pause = MAX_PAUSE
                if self._line[0] is waiter:
                    lease, decision = await self._ask(tokens)
                    if lease is not None:
                        yield lease
                        return
                    left = began + self._max_wait - anyio.current_time()
                    self._raise_if_hopeless(decision, left)
                    pause = min(decision.wait, MAX_PAUSE)
                elif began + self._max_wait < anyio.current_time():
                    raise self._too_late(MAX_PAUSE)
                with anyio.move_on_after(pause):
                    await (anyio.sleep(pause) if self._line[0] is waiter else waiter.turn.wait())
                if not told and anyio.current_time() - began >= TOLD_AFTER:
                    told = True
                    yield ModelStatus(
                        f"Waiting for a free key of {self.adapter}: its limits are used up for now."
                    )
        finally:
            await self._step_out(waiter)

    async def release(self, lease: KeyLease, tokens: int | None = None) -> None:
        """Return a lease. ``tokens`` are those that the request used, None if that is not known."""
        self._leases.discard(lease.use.lease)
        await self._try_change(lambda pool, now: release(pool, lease.use, now, tokens=tokens))

    async def rest(self, lease: KeyLease, seconds: float, fault: str) -> bool:
        """Let a key rest. Report whether another key can be used now."""
        log.warning(
            "the key %s of %s rests for %.0f s (%s)", lease.variable or OWN_KEY, self.adapter, seconds, fault
        )
        await self._try_change(lambda pool, now: rest(pool, lease.use.digest, seconds, fault, now))
        mine, now = self._digests(self._pool.salt), self._clock()
        return any(key.digest in mine and key.rests_until <= now for key in self._pool.keys)

    async def renew(self) -> None:
        """Say that the requests under way are under way."""
        if self._leases:
            await self._try_change(lambda pool, now: renew(pool, tuple(self._leases), now))

    async def _ask(self, tokens: int) -> tuple[KeyLease | None, KeyDecision]:
        id = new_id("lease")

        def asked(pool: KeyPool, now: float) -> tuple[KeyPool, tuple[KeyDecision, int]]:
            digests = tuple(self._digests(pool.salt))
            if not digests:
                raise self._no_key()
            request = KeyRequest(self._ticket, id, tokens, digests)
            decision = decide(pool, request, self._settings, now)
            return decision.pool, (decision, int(now))

        try:
            decision, second = await self._change(asked)
        except (BusError, TimeoutError) as error:
            log.warning("the keys of %s cannot be counted now: %s", self.adapter, error)
            return None, KeyDecision(self._pool, wait=POLL_SECONDS)
        if decision.digest is None:
            return None, decision
        self._leases.add(id)
        use = KeyUse(decision.digest, id, second, tokens)
        return KeyLease(self._digests(decision.pool.salt)[decision.digest], use), decision

    async def _step_out(self, waiter: _Waiter) -> None:
        """Leave the line, and let the next one ask."""
        first = self._line[0] is waiter
        self._line.remove(waiter)
        if self._line:
            self._line[0].turn.set()
        elif first and any(ticket.id == self._ticket for ticket in self._pool.waiting):
            await self._try_change(lambda pool, now: leave(pool, self._ticket, now))

    async def _try_change(self, change: Callable[[KeyPool, float], KeyPool]) -> None:
        """Apply a change, also when the caller is cancelled. What cannot be stored now is not lost for long: the others
        forget a request that is not renewed, and a place in the line.
        """
        with anyio.CancelScope(shield=True):
            try:
                await self._change(lambda pool, now: (change(pool, now), None))
            except (BusError, TimeoutError) as error:
                log.warning("a change of the keys of %s could not be stored: %s", self.adapter, error)

    async def _change(self, change: Callable[[KeyPool, float], tuple[KeyPool, T]]) -> T:
        """Apply a change to the pool that all monitors share, and return its result. Raise BusError or TimeoutError if
        the pool cannot be stored."""
        with anyio.fail_after(BUS_SECONDS):
            async with self._writing:
                while True:
                    pool, result = change(self._pool, self._clock())
                    if self._bus is None or await self._store(self._bus, pool):
                        self._pool = pool
                        return result

    async def _store(self, bus: Bus, pool: KeyPool) -> bool:
        """Store a pool. If another monitor changed it before, read it instead and return False."""
        bucket, key = bus.kv(KEY_POOL_BUCKET), key_of("pool", self.adapter)
        try:
            self._revision = await bucket.update(key, pool, self._revision)
        except SequenceConflict:
            entry = await bucket.get(key)
            self._revision = entry.revision if entry is not None else 0
            self._pool = entry.value if entry is not None and entry.value is not None else self._pool
            return False
        return True

    def _digests(self, salt: str) -> dict[str, str]:
        """Return the variables of the keys that are set, by digest."""
        return {
            digest: name
            for name in self._settings.variables
            if (digest := digest_of(os.environ.get(name, ""), salt) if name else OWN_KEY)
        }

    def _raise_if_hopeless(self, decision: KeyDecision, left: float) -> None:
        """Raise the error of a request that gets no key within ``left`` seconds."""
        if decision.wait <= left:
            return
        mine = self._digests(decision.pool.salt)
        faults = {key.fault for key in decision.pool.keys if key.digest in mine}
        if not decision.limited and faults == {"authentication"}:
            raise ModelError(
                ErrorCode.PROVIDER_ERROR, "authentication", f"{self.adapter} refused each of {len(mine)} keys"
            )
        raise self._too_late(decision.wait)

    def _too_late(self, wait: float) -> ModelError:
        detail = f"no key of {self.adapter} is free within {self._max_wait:g} s (plugins.keys.max_wait)"
        return ModelError(ErrorCode.PROVIDER_ERROR, "rate_limited", detail, retry_after=wait)

    def _no_key(self) -> ModelError:
        names = ", ".join(self._settings.variables)
        detail = f"no variable of keys in [plugins.keys.pools.{self.adapter}] is set: {names}"
        return ModelError(ErrorCode.PROVIDER_ERROR, "authentication", detail)


def digest_of(key: str, salt: str) -> str:
    """Return the digest that identifies a key in the pool; "" for no key."""
    return hashlib.sha256(f"{salt}:{key}".encode()).hexdigest()[:DIGEST_CHARS] if key else ""


def _new_pool(adapter: str, now: float) -> KeyPool:
    return KeyPool(adapter=adapter, salt=secrets.token_hex(16), changed_at=datetime.fromtimestamp(now, UTC))
