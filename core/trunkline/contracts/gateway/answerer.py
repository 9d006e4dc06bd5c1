"""Who answers in a block: asked by those who show it to people before anything is said."""

from trunkline_bus import Payload


class GetAnswerer(Payload, frozen=True, kw_only=True, tag="model.get-answerer.v1"):
    """Ask who answers. Without a ``block`` it is the default block's."""

    block: str | None = None


class Answerer(Payload, frozen=True, kw_only=True, tag="model.answerer.v1"):
    """Who answers the next message, unless it or a plugin names another model: ``adapter/model``, or the adapter alone
    when nobody named a model. ``window`` is how many tokens the model takes in, 0 when that is not configured.
    ``problem`` says why nobody does, and is "" otherwise."""

    label: str = ""
    window: int = 0
    problem: str = ""
