"""The decision of a turn router about one turn. It imports nothing of Trunkline."""

import msgspec


class TurnRoute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision of a turn router about a turn.

    ``category`` names the kind of work, and ``reason`` says why it was chosen; both are shown in the turn's trace.
    ``tools`` are names and patterns of the tools that the model is shown from the start; it finds and loads the others
    through the discovery tools. None changes nothing. ``model`` is ``adapter/model``, None for the preferred one; a
    model that a person named takes precedence. ``mode`` is a word of the plugin that routed, which its model middleware
    reads in ``ModelRequest.route``.
    """

    category: str
    reason: str
    tools: tuple[str, ...] | None = None
    model: str | None = None
    mode: str = ""
