"""The rules of a pool: limits in every minute, turns, rests and lost shares. Time is a number."""

import random
from datetime import UTC, datetime

from trunkline.api.model import KeyPool
from trunkline_keys.pool_rules import (
    LEASE_SECONDS,
    TICKET_SECONDS,
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

EMPTY = KeyPool(adapter="a", salt="s", changed_at=datetime.now(UTC))
UNLIMITED = PoolSettings()


def ask(
    pool: KeyPool,
    now: float,
    settings: PoolSettings = UNLIMITED,
    *,
    lease: str = "l",
    ticket: str = "me",
    tokens: int = 0,
    digests: tuple[str, ...] = ("k1", "k2"),
) -> KeyDecision:
    return decide(pool, KeyRequest(ticket, lease, tokens, digests), settings, now)


def test_keys_are_used_in_turn() -> None:
    """The key that was not used for longest is next, whoever used it."""
    pool, used = EMPTY, []
    for number in range(6):
        decision = ask(pool, 1_000.0 + number, lease=str(number), digests=("k1", "k2", "k3"))
        pool, used = decision.pool, [*used, decision.digest]
    assert used == ["k1", "k2", "k3"] * 2


def test_a_clock_that_is_set_back_takes_no_key_away() -> None:
    """What was counted an hour ahead limits nobody for an hour: requests, tokens, leases and places in the line."""
    settings = PoolSettings(requests_per_minute=1, tokens_per_minute=10, concurrent=1)
    pool = ask(EMPTY, 10_000.0, settings, tokens=10, digests=("k1",)).pool
    waiting = ask(pool, 10_000.0, settings, ticket="other", lease="l2", digests=("k1",))
    assert waiting.digest is None
    assert ask(waiting.pool, 6_400.0, settings, lease="l3", digests=("k1",)).digest == "k1"
    assert (
        ask(waiting.pool, 9_990.0, settings, lease="l3", digests=("k1",)).digest is None
    )  # clocks may differ


def test_no_minute_has_more_requests_or_tokens_than_the_limit() -> None:
    """Whenever requests arrive, and wherever the minute begins; and the limit is nearly used up."""
    settings = PoolSettings(requests_per_minute=20, tokens_per_minute=5_000)
    rng = random.Random(7)
    pool, now, sent = EMPTY, 1_000.0, list[tuple[float, int]]()
    while now < 2_000.0:
        tokens = rng.choice((10, 200, 900))
        decision = ask(pool, now, settings, lease=str(now), tokens=tokens, digests=("k1",))
        pool = decision.pool
        if decision.digest is None:
            now += max(0.001, decision.wait)
            continue
        real = rng.choice((tokens, tokens // 2, tokens + 50))
        pool = release(pool, KeyUse("k1", str(now), int(now), tokens), now, tokens=min(real, tokens))
        sent.append((now, min(real, tokens)))
        now += rng.expovariate(1.0)
    for begin, _ in sent:
        minute = [tokens for at, tokens in sent if begin <= at < begin + 60]
        assert len(minute) <= 20 and sum(minute) <= 5_000
    assert len(sent) > 200


def test_a_request_larger_than_the_limit_gets_a_whole_minute() -> None:
    """It would wait for ever otherwise. The vendor decides about it."""
    settings = PoolSettings(tokens_per_minute=100)
    first = ask(EMPTY, 1_000.0, settings, tokens=500, digests=("k1",))
    assert first.digest == "k1"
    second = ask(first.pool, 1_001.0, settings, tokens=1, digests=("k1",))
    assert second.digest is None and 59 < second.wait <= 61


def test_requests_at_a_time_are_limited_and_a_lost_share_returns() -> None:
    """A lease that is renewed stays; that of a crashed monitor ends by itself."""
    settings = PoolSettings(concurrent=1)
    pool = ask(EMPTY, 1_000.0, settings, lease="first", digests=("k1",)).pool
    waiting = ask(pool, 1_001.0, settings, lease="second", digests=("k1",))
    assert waiting.digest is None
    kept = renew(waiting.pool, ("first",), 1_020.0)
    assert ask(kept, 1_000.0 + LEASE_SECONDS + 1, settings, digests=("k1",)).digest is None
    assert ask(kept, 1_020.0 + LEASE_SECONDS + 1, settings, digests=("k1",)).digest == "k1"
    ended = release(waiting.pool, KeyUse("k1", "first", 1_000, 0), 1_002.0)
    assert ask(ended, 1_002.0, settings, digests=("k1",)).digest == "k1"


def test_the_first_in_the_line_is_served_first() -> None:
    """A later request does not overtake; a place that is not renewed, or given up, is lost."""
    settings = PoolSettings(concurrent=1)
    pool = ask(EMPTY, 1_000.0, settings, lease="running", digests=("k1",)).pool
    for ticket in ("first", "second"):
        pool = ask(pool, 1_000.0, settings, ticket=ticket, digests=("k1",)).pool
    pool = release(pool, KeyUse("k1", "running", 1_000, 0), 1_001.0)
    assert ask(pool, 1_001.0, settings, ticket="second", digests=("k1",)).digest is None
    assert ask(pool, 1_001.0, settings, ticket="new", digests=("k1",)).digest is None
    assert ask(pool, 1_001.0, settings, ticket="first", digests=("k1",)).digest == "k1"
    assert (
        ask(leave(pool, "first", 1_001.0), 1_001.0, settings, ticket="second", digests=("k1",)).digest == "k1"
    )
    late = 1_000.0 + TICKET_SECONDS + 0.1
    assert ask(pool, late, settings, ticket="new", digests=("k1",)).digest == "k1"


def test_a_key_that_rests_is_passed_over() -> None:
    """The wait is the rest of the vendor, and is told as such."""
    pool = rest(ask(EMPTY, 1_000.0).pool, "k1", 30.0, "rate_limited", 1_000.0)
    assert ask(pool, 1_001.0).digest == "k2"
    both = rest(pool, "k2", 60.0, "authentication", 1_001.0)
    decision = ask(both, 1_001.0)
    assert (decision.digest, decision.limited) == (None, False) and 28 < decision.wait < 30
    assert ask(both, 1_031.0).digest == "k1"


def test_monitors_with_other_keys_do_not_forget_each_others() -> None:
    """During a change of the settings, what a key of the other monitor used still counts."""
    settings = PoolSettings(requests_per_minute=1)
    pool = ask(EMPTY, 1_000.0, settings, digests=("old",)).pool
    pool = ask(pool, 1_001.0, settings, digests=("new",)).pool
    assert ask(pool, 1_002.0, settings, digests=("old",)).digest is None
    assert [key.digest for key in ask(pool, 1_100.0, settings, digests=("new",)).pool.keys] == ["new"]
