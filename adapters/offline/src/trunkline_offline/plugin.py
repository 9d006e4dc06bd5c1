"""The plugin: declares the adapter."""

from collections.abc import Iterable

from trunkline import ModelAdapter, hookimpl
from trunkline_offline.adapter import OfflineAdapter


@hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    return [OfflineAdapter()]
