"""The rules of a pool of keys: which key a request gets, and when one is free. Pure: no clock, no bus.

Limits are counted in slots of one second. A slot counts for 61 seconds, so that no minute, wherever it begins, has more
than the limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from trunkline.api.model import KeyPool, KeyTicket, PooledKey
from trunkline_keys.settings import PoolSettings

WINDOW_SECONDS = 61
"""Seconds for which a slot counts: a minute, and the second in which the slot's requests were made."""

LEASE_SECONDS = 30.0
"""Seconds after which a request counts as lost unless its monitor renews it. So a crashed monitor's share returns."""

TICKET_SECONDS = 5.0
"""Seconds after which a place in the line is lost unless renewed."""

CLOCK_TOLERANCE = 60.0
"""Seconds by which the clocks of monitors may differ. What lies further ahead was written before a clock was set back.
"""

POLL_SECONDS = 0.2
"""Seconds after which a request that waits for others to end asks again."""


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A request for a key. ``ticket`` is its monitor's place in the line, ``lease`` the id that the request gets,
    ``tokens`` the number that it is counted with. ``digests`` are the keys that may be used.
    """

    ticket: str
    lease: str
    tokens: int
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyDecision:
    """The pool after a request for a key, and the digest of the key that the request gets. Without a key, ``wait`` is
    the number of seconds after which to ask again, and ``limited`` says that a limit of the settings is the reason and
    not the vendor.
    """

    pool: KeyPool
    digest: str | None = None
    wait: float = 0.0
    limited: bool = True


def decide(pool: KeyPool, request: KeyRequest, settings: PoolSettings, now: float) -> KeyDecision:
    """Give the request the free key that was not used for longest, or its place in the line."""
    pool = _pruned(pool, request.digests, now)
    first = next((ticket.id for ticket in pool.waiting), request.ticket)
    usable = [key for key in pool.keys if key.digest in request.digests]
    waits = {key.digest: _wait(key, request.tokens, settings, now) for key in usable}
    free = [key for key in usable if waits[key.digest] <= 0]
    if first == request.ticket and free:
        chosen = min(free, key=lambda key: key.used_at)
        others = tuple(ticket for ticket in pool.waiting if ticket.id != request.ticket)
        keys = tuple(_used(key, request, now) if key is chosen else key for key in pool.keys)
        return KeyDecision(_changed(pool, now, keys=keys, waiting=others), chosen.digest)
    awake = [key for key in usable if key.rests_until <= now]
    wait = POLL_SECONDS if first != request.ticket else min(waits.values(), default=POLL_SECONDS)
    return KeyDecision(_queued(pool, request.ticket, now), wait=wait, limited=bool(awake))


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The use of a key by one request. ``second`` is the slot in which the request began, ``tokens`` the number that it
    was counted with.
    """

    digest: str
    lease: str
    second: int
    tokens: int


def release(pool: KeyPool, use: KeyUse, now: float, *, tokens: int | None = None) -> KeyPool:
    """Return the pool after a request ended with this number of tokens; None leaves it as it was counted.

    Tokens that were counted but not used are taken out of the slot that has them; further ones count from now on.
    """
    difference = 0 if tokens is None else tokens - use.tokens

    def ended(key: PooledKey) -> PooledKey:
        running = {id: expires for id, expires in key.running.items() if id != use.lease}
        second = use.second if difference < 0 else int(now)
        if difference < 0 and second not in key.slots:
            return replace(key, running=running)
        requests, counted = key.slots.get(second, (0, 0))
        return replace(key, running=running, slots={**key.slots, second: (requests, counted + difference)})

    return _with_key(pool, use.digest, ended, now)


def rest(pool: KeyPool, digest: str, seconds: float, fault: str, now: float) -> KeyPool:
    """Return the pool in which a key is not used for some seconds, because of ``fault``."""
    return _with_key(
        pool,
        digest,
        lambda key: replace(key, rests_until=max(key.rests_until, now + seconds), fault=fault),
        now,
    )


def _with_key(pool: KeyPool, digest: str, change: Callable[[PooledKey], PooledKey], now: float) -> KeyPool:
    keys = tuple(change(key) if key.digest == digest else key for key in pool.keys)
    return _changed(pool, now, keys=keys)


def renew(pool: KeyPool, leases: Sequence[str], now: float) -> KeyPool:
    """Return the pool in which these requests are still under way."""

    def renewed(key: PooledKey) -> PooledKey:
        mine = {id: now + LEASE_SECONDS for id in key.running if id in leases}
        return replace(key, running={**key.running, **mine}) if mine else key

    return _changed(pool, now, keys=tuple(map(renewed, pool.keys)))


def leave(pool: KeyPool, ticket: str, now: float) -> KeyPool:
    """Return the pool without a place in the line."""
    return _changed(pool, now, waiting=tuple(one for one in pool.waiting if one.id != ticket))


def _pruned(pool: KeyPool, digests: Sequence[str], now: float) -> KeyPool:
    """Return the pool without what is over, and with the keys that it does not have yet."""
    known = {key.digest: _without_past(key, now) for key in pool.keys}
    keys = {digest: known.get(digest, PooledKey(digest=digest)) for digest in digests}
    foreign = {digest: key for digest, key in known.items() if digest not in keys and _is_in_use(key, now)}
    latest = now + TICKET_SECONDS + CLOCK_TOLERANCE
    waiting = tuple(ticket for ticket in pool.waiting if now < ticket.expires <= latest)
    return replace(pool, keys=(*keys.values(), *foreign.values()), waiting=waiting)


def _without_past(key: PooledKey, now: float) -> PooledKey:
    slots = {
        second: used
        for second, used in key.slots.items()
        if now - WINDOW_SECONDS < second <= now + CLOCK_TOLERANCE
    }
    latest = now + LEASE_SECONDS + CLOCK_TOLERANCE
    running = {id: expires for id, expires in key.running.items() if now < expires <= latest}
    rests = key.rests_until > now
    return replace(
        key,
        slots=slots,
        running=running,
        rests_until=key.rests_until if rests else 0.0,
        fault=key.fault if rests else "",
    )


def _is_in_use(key: PooledKey, now: float) -> bool:
    """Report whether a key of another monitor's settings still counts."""
    return bool(key.slots or key.running or key.rests_until > now)


def _wait(key: PooledKey, tokens: int, settings: PoolSettings, now: float) -> float:
    """Return the seconds until the key may be free; 0 if it is."""
    waits = [key.rests_until - now]
    if settings.concurrent is not None and len(key.running) >= settings.concurrent:
        waits.append(POLL_SECONDS)
    if settings.requests_per_minute is not None:
        used = {second: requests for second, (requests, _) in key.slots.items()}
        waits.append(_until_room(used, settings.requests_per_minute - 1, now))
    if settings.tokens_per_minute is not None:
        used = {second: counted for second, (_, counted) in key.slots.items()}
        room = max(0, settings.tokens_per_minute - tokens)  # a larger request gets the whole minute
        waits.append(_until_room(used, room, now))
    return max(0.0, *waits)


def _until_room(used: dict[int, int], most: int, now: float) -> float:
    """Return the seconds until the slots contain at most this much; 0 if they do."""
    left = sum(used.values())
    for second in sorted(used):
        if left <= most:
            break
        left -= used[second]
        if left <= most:
            return second + WINDOW_SECONDS - now
    return 0.0


def _used(key: PooledKey, request: KeyRequest, now: float) -> PooledKey:
    requests, counted = key.slots.get(int(now), (0, 0))
    return replace(
        key,
        used_at=now,
        slots={**key.slots, int(now): (requests + 1, counted + request.tokens)},
        running={**key.running, request.lease: now + LEASE_SECONDS},
    )


def _queued(pool: KeyPool, ticket: str, now: float) -> KeyPool:
    renewed = KeyTicket(id=ticket, expires=now + TICKET_SECONDS)
    if ticket not in {one.id for one in pool.waiting}:
        return _changed(pool, now, waiting=(*pool.waiting, renewed))
    waiting = tuple(renewed if one.id == ticket else one for one in pool.waiting)
    return _changed(pool, now, waiting=waiting)


def _changed(
    pool: KeyPool,
    now: float,
    *,
    keys: tuple[PooledKey, ...] | None = None,
    waiting: tuple[KeyTicket, ...] | None = None,
) -> KeyPool:
    return replace(
        pool,
        changed_at=datetime.fromtimestamp(now, UTC),
        keys=pool.keys if keys is None else keys,
        waiting=pool.waiting if waiting is None else waiting,
    )
