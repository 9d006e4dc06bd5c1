"""A single request to a model and its answer, without tools, conversation or turn; for tools and background work."""

from typing import Annotated, Final

import msgspec

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.models.abilities import Purpose
from trunkline_bus import Payload

MicroUSD = Annotated[int, msgspec.Meta(ge=0)]
"""Millionths of a US dollar as an integer, so that sums are exact."""

TIMEOUT: Final = "timeout"
"""The code if the model did not finish within ``timeout``."""


NO_VISION_MODEL: Final = "no_vision_model"
"""The code if the messages have images and no vision model is configured."""


class Complete(Payload, frozen=True, kw_only=True, tag="model.complete.v1"):
    """Call a model: ``model``, else the one that the block's or the owner's settings name for the purpose, else as for
    a turn. If messages have images, the model for the purpose ``vision`` is used.

    ``actor`` is the caller, for the accounting. ``budget_turn`` is as in ``ModelRequest``. ``max_cost`` limits the cost
    of the call: a request whose input alone exceeds the limit is refused, and the length of the answer is limited
    accordingly. ``timeout`` is in seconds. ``reasoning`` is as in ``ModelRequest``. The block, conversation and turn
    are in the message's envelope.
    """

    messages: Annotated[tuple[Message, ...], msgspec.Meta(min_length=1)]
    purpose: Purpose
    actor: str = ""
    budget_turn: str = ""
    model: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: float | None = None
    max_cost: MicroUSD | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    reasoning: bool = True


class Completion(Payload, frozen=True, kw_only=True, tag="model.completion.v1"):
    """The answer and its cost.

    ``cost`` is the tokens that the provider counted multiplied by the price. ``price`` names that price, as
    ``2.5/1.25/10``: US dollars per million tokens of input, cached input and output. If the model has no price,
    ``price`` is "" and ``cost`` is 0. ``finish_reason`` is stop, max_tokens, tool_calls or content_filter.
    """

    text: str
    adapter: str
    model: str
    purpose: Purpose
    usage: Usage = Usage()
    cost: MicroUSD = 0
    price: str = ""
    finish_reason: str = "stop"
