"""The pools of keys of vendors: how much each key was used and whether it rests. Kept on the bus for all monitors."""

from datetime import datetime

import msgspec

from trunkline_bus import BucketSpec


class PooledKey(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state of one key.

    Times are seconds since 1970. ``digest`` identifies the key without revealing it. ``used_at`` is the time of its
    last use. ``rests_until`` is the end of the time in which the key is not used, and ``fault`` the reason
    (``ModelFault``); 0 and "" for a key that does not rest. ``slots`` are the requests and tokens of the last minute,
    by the second in which they began. ``running`` are the requests under way, each with the time at which it counts as
    lost unless its monitor renews it.
    """

    digest: str
    used_at: float = 0.0
    rests_until: float = 0.0
    fault: str = ""
    slots: dict[int, tuple[int, int]] = {}
    running: dict[str, float] = {}

    @property
    def requests(self) -> int:
        """The number of requests of the last minute, as far as the slots are pruned."""
        return sum(requests for requests, _ in self.slots.values())

    @property
    def tokens(self) -> int:
        """The number of tokens of the last minute, as far as the slots are pruned."""
        return sum(tokens for _, tokens in self.slots.values())


class KeyTicket(msgspec.Struct, kw_only=True):
    """The place of a monitor in the line for a key. It is lost at ``expires`` (seconds since 1970) unless renewed."""

    id: str
    expires: float


class KeyPool(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The keys of one adapter, and the monitors that wait for one, the first one first. ``salt`` is a random text in
    the digests of the keys.
    """

    adapter: str
    salt: str
    changed_at: datetime
    keys: tuple[PooledKey, ...] = ()
    waiting: tuple[KeyTicket, ...] = ()


KEY_POOL_BUCKET: BucketSpec[KeyPool] = BucketSpec(
    name="key-pools",
    payload=KeyPool,
    ttl=86_400.0,
    storage="memory",
    description="How much the keys of model vendors were used, and which keys rest",
)
