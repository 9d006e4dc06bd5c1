"""The section ``[channels.terminal]`` of ``trunkline.toml``."""

import msgspec


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the terminal's display.

    ``block`` is where a new conversation begins when the command line names none. ``code_theme`` is a Pygments style,
    or ``ansi_dark`` / ``ansi_light``, which use the terminal's own colours. ``show_reasoning`` shows what a provider
    lets be seen of the model's reasoning.
    """

    block: str | None = None
    code_theme: str = "ansi_dark"
    show_reasoning: bool = True
