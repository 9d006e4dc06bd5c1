"""Which adapter answers when nobody chose one: the one that is configured, else the one that needs nothing."""

from collections.abc import Sequence

from trunkline.abc.models import ModelAdapter
from trunkline.config import Config

OFFLINE = "offline"


def default_adapter(config: Config, adapters: Sequence[ModelAdapter]) -> str:
    """``runtime.provider_adapter``, or for "auto" the first adapter that says it is ``configured``."""
    chosen = config.settings.runtime.provider_adapter
    if chosen != "auto":
        return chosen
    ready = (adapter.name for adapter in adapters if adapter.name != OFFLINE and adapter.configured)
    return next(ready, OFFLINE)
