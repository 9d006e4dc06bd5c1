"""The plugin: declares the adapter, and the sentences that it says in every conversation."""

from collections.abc import Iterable

from trunkline import hookimpl
from trunkline.api.memory import Purger
from trunkline.api.model import ModelAdapter


@hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    from trunkline_offline.adapter import OfflineAdapter

    return [OfflineAdapter()]


@hookimpl
def trunkline_purgers() -> Iterable[Purger]:
    from trunkline_offline.answers import FixedAnswers

    return [FixedAnswers()]
