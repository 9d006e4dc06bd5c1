"""The section ``[channels.terminal]`` of ``trunkline.toml``."""

from typing import Literal

import msgspec


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.terminal]``.

    ``block`` is the block of a new conversation for which the command line names none. ``theme`` is the theme until
    ``/theme`` chooses another one: ``dark`` and ``light`` are for terminals with such a background, ``none`` has no
    colours. ``code_theme`` is the style of code: a Pygments style, or ``ansi_dark`` / ``ansi_light``, which use the
    terminal's own colours; unset, the theme decides. ``show_reasoning`` shows the part of the model's reasoning that
    the provider sends. ``plain`` prints lines only, without drawing or moving the cursor, for screen readers.
    """

    block: str | None = None
    theme: Literal["dark", "light", "none"] = "dark"
    code_theme: str | None = None
    show_reasoning: bool = True
    plain: bool = False
