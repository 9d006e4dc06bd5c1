"""The section ``[plugins.keys]``."""

from typing import Annotated

import msgspec

from trunkline import ConfigError, Secret

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.keys.pools.ADAPTER]``.

    ``keys`` are references to the variables with the keys; without any, the adapter's own key is limited. The limits
    hold for each key, over all monitors: ``requests_per_minute``, ``tokens_per_minute`` (input and output), and
    ``concurrent`` requests. None is no limit. ``answer_tokens`` is the number of output tokens that a request without
    ``max_tokens`` is counted with until its answer is complete.
    """

    keys: tuple[Secret, ...] = ()
    requests_per_minute: PositiveInt | None = None
    tokens_per_minute: PositiveInt | None = None
    concurrent: PositiveInt | None = None
    answer_tokens: PositiveInt = 1_000

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the keys; "" stands for the adapter's own key."""
        return tuple(key.env for key in self.keys) or ("",)


class KeysSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.keys]``.

    ``pools`` are the keys and limits by adapter. A request waits for a free key at most ``max_wait`` seconds. A key
    that the vendor limits rests for the time that the vendor names, or ``limited_rest`` seconds; a key that the vendor
    refuses rests for ``refused_rest`` seconds.
    """

    pools: dict[str, PoolSettings] = {}
    max_wait: Seconds = 90.0
    limited_rest: Seconds = 20.0
    refused_rest: Seconds = 3_600.0

    def __post_init__(self) -> None:
        for adapter, pool in self.pools.items():
            if len(set(pool.keys)) < len(pool.keys):
                raise ConfigError(
                    f"plugins.keys.pools.{adapter}.keys names a variable twice.",
                    hint="A key that is counted twice would exceed its limits: name each variable once.",
                )
