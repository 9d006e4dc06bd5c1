"""The model that answers in a block, which clients display before the first message."""

from trunkline_bus import Payload


class GetAnswerer(Payload, frozen=True, kw_only=True, tag="model.get-answerer.v1"):
    """Ask which model answers in a block. None selects the default block."""

    block: str | None = None


class Answerer(Payload, frozen=True, kw_only=True, tag="model.answerer.v1"):
    """The model that answers the next message, unless the message or a plugin names another one. ``label`` is
    ``adapter/model``, or the adapter alone if no model is configured. ``window`` is the model's context window in
    tokens, 0 if not configured. ``problem`` says why no model answers, "" if one does.
    """

    label: str = ""
    window: int = 0
    problem: str = ""
