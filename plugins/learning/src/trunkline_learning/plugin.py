"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_lifespan(worker: trunkline.WorkerKind) -> Iterable[trunkline.Lifespan]:
    """The learner, in every monitor; one of them learns."""
    if worker != "monitor":
        return []
    from trunkline_learning.following import following

    return [following]


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """What was learned, for the task at hand."""
    from trunkline_learning.context import Learned

    return [Learned()]
