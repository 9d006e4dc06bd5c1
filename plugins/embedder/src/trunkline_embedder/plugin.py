"""The plugin: declares its embedder and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline.api.memory import Embedder


@trunkline.hookimpl
def trunkline_embedders() -> Iterable[Embedder]:
    """The static embedder. Its weights are loaded when it is first asked."""
    from trunkline_embedder.static import StaticEmbedder

    return [StaticEmbedder()]
