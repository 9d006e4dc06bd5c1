"""The section ``[plugins.failover]``."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from trunkline import ConfigError

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]

ANY_MODEL = "*"
"""The key of the fallbacks of every model that has none of its own."""


class FailoverSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.failover]``.

    A model is called up to ``attempts`` times in one model call. The pause before the second attempt is ``first_delay``
    seconds, doubles with each attempt up to ``max_delay``, and is shortened at random by up to half. If the vendor asks
    for a longer pause (``Retry-After``), that pause holds. An attempt is repeated only within the first ``max_wait``
    seconds of the model call; a fallback always gets one attempt. ``fallbacks`` lists the models that are called
    instead, in their order: the key is the model that failed (``adapter/model``), an adapter for all its models, or
    ``*`` for every other model. After ``open_after`` failures without a success a model's circuit opens for
    ``open_seconds``: while a fallback can be called, the model is not.
    """

    attempts: PositiveInt = 3
    first_delay: Seconds = 0.5
    max_delay: Seconds = 20.0
    max_wait: Seconds = 60.0
    fallbacks: dict[str, tuple[str, ...]] = {}
    open_after: PositiveInt = 5
    open_seconds: Seconds = 30.0

    def __post_init__(self) -> None:
        for model, others in self.fallbacks.items():
            if model in others:
                raise ConfigError(
                    f"plugins.failover.fallbacks.{model!r} names {model!r} as its own fallback.",
                    hint="Remove it from the list; a model is called again by `attempts`.",
                )

    def named_models(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the models that may fail and their fallbacks, each with its setting."""
        for model, others in self.fallbacks.items():
            for named in (model, *others):
                if named != ANY_MODEL:
                    yield ("fallbacks", model), named

    def fallbacks_of(self, adapter: str, model: str) -> tuple[str, ...]:
        """Return the fallbacks of a model; the most specific key holds."""
        label = f"{adapter}/{model}" if model else adapter
        for key in (label, adapter, ANY_MODEL):
            if key in self.fallbacks:
                return tuple(other for other in self.fallbacks[key] if other != label)
        return ()
