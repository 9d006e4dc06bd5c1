"""The section ``[plugins.rlm]``."""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class RlmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.rlm]``. ``max_iterations`` is the number of pieces of code that a model may write for one question,
    ``max_depth`` the depth of nested questions, ``timeout`` the seconds that a piece of code may compute, and
    ``memory_mb`` its memory limit, in MiB. ``max_calls`` and ``max_cost_usd`` limit all model calls of one retrieval
    together; a model without a price costs nothing. ``model`` writes the code; by default the block's model.
    """

    max_iterations: Count = 10
    max_depth: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    timeout: Seconds = 60.0
    memory_mb: Annotated[int, msgspec.Meta(ge=16, le=4_096)] = 128
    max_calls: Count = 50
    max_cost_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    model: str | None = None
