"""The plugin: declares the adapter, and which of its sentences are nobody's."""

from collections.abc import Iterable

from trunkline import hookimpl
from trunkline.api.memory import Purger
from trunkline.api.model import ModelAdapter
from trunkline_offline.adapter import OfflineAdapter
from trunkline_offline.answers import HELP, HOW_TO


class FixedAnswers(Purger):
    """The adapter keeps nothing. It says the same in many conversations."""

    name = "offline"
    texts = (HELP, HOW_TO)


@hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    return [OfflineAdapter()]


@hookimpl
def trunkline_purgers() -> Iterable[Purger]:
    return [FixedAnswers()]
