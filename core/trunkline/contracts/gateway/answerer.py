"""The model that answers in a block or a conversation, which clients display, and the choice of a conversation."""

from trunkline_bus import Payload


class GetAnswerer(Payload, frozen=True, kw_only=True, tag="model.get-answerer.v1"):
    """Ask which model answers in a block, or in a conversation of it. None selects the default block.

    The gateway replaces ``conversation`` by ``chosen``, the model that was chosen for the conversation, before it asks
    a monitor.
    """

    block: str | None = None
    conversation: str | None = None
    chosen: str | None = None


class CheckModel(Payload, frozen=True, kw_only=True, tag="model.check.v1"):
    """Ask whether a model can be had: ``adapter/model``, an adapter, or a model of the default adapter."""

    model: str


class Answerer(Payload, frozen=True, kw_only=True, tag="model.answerer.v1"):
    """The model that answers the next message, unless the message or a plugin names another one. ``label`` is
    ``adapter/model``, or the adapter alone if no model is configured. ``window`` is the model's context window in
    tokens, 0 if not configured. ``problem`` says why no model answers, "" if one does. ``chosen`` is true if the model
    was chosen for the conversation (``/model``).
    """

    label: str = ""
    window: int = 0
    problem: str = ""
    chosen: bool = False


class ChooseModel(Payload, frozen=True, kw_only=True, tag="gateway.choose-model.v1"):
    """Choose the model of a conversation, from its next message on. None removes the choice, so that the settings of
    the block and of the owner decide. Without a conversation the model is only checked.
    """

    conversation: str | None
    model: str | None
