"""One question to a model and its answer, without tools, conversation or turn: for tools and background work."""

from typing import Annotated, Final

import msgspec

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline_bus import Payload

Purpose = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
"""The purpose of a model call, by which costs are grouped: ``turn``, ``route``, ``summary``, ``embed``, ``repl``, …."""

MicroUSD = Annotated[int, msgspec.Meta(ge=0)]
"""Millionths of a US dollar: whole, so that sums of many calls are exact."""

OVER_BUDGET: Final = "over_budget"
"""The code of a refusal before the call: it could cost more than ``max_cost``."""

TIMEOUT: Final = "timeout"
"""The code when the model did not end within ``timeout``."""


NO_VISION_MODEL: Final = "no_vision_model"
"""The code when there are pictures to look at and no model that was chosen for it."""


class Complete(Payload, frozen=True, kw_only=True, tag="model.complete.v1"):
    """Ask a model. Which one is chosen as for a turn: ``model``, else the block's, else the owner's preference. Where
    messages have images it is their ``vision_model``.

    ``actor`` is who asks, for a ledger. ``max_cost`` is what the call may cost: refused when the question alone is
    too dear, and its answer is kept short enough. ``timeout`` is in seconds. Block, conversation and turn are the
    envelope's.
    """

    messages: Annotated[tuple[Message, ...], msgspec.Meta(min_length=1)]
    purpose: Purpose
    actor: str = ""
    model: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: float | None = None
    max_cost: MicroUSD | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Completion(Payload, frozen=True, kw_only=True, tag="model.completion.v1"):
    """The answer, and what a ledger needs to know of it.

    ``cost`` is the tokens that the provider counted times the price; ``price`` names that price, as
    ``2.5/1.25/10`` (US dollars per million tokens of input, cached input and output). It is "" when nobody has set a
    price for the model, and then ``cost`` is 0. ``finish_reason`` is stop, max_tokens, tool_calls or content_filter.
    """

    text: str
    adapter: str
    model: str
    purpose: Purpose
    usage: Usage = Usage()
    cost: MicroUSD = 0
    price: str = ""
    finish_reason: str = "stop"
