"""The section ``[channels.terminal]`` of ``trunkline.toml``."""

import msgspec


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.terminal]``.

    ``block`` is the block of a new conversation for which the command line names none. ``code_theme`` is a Pygments
    style, or ``ansi_dark`` / ``ansi_light``, which use the terminal's own colours. ``show_reasoning`` shows the part of
    the model's reasoning that the provider sends.
    """

    block: str | None = None
    code_theme: str = "ansi_dark"
    show_reasoning: bool = True
