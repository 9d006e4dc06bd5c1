"""The themes: the colours of short lines, of the input and of code. Obeys ``NO_COLOR``."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CHOICE_FILE = "terminal_theme"
"""The file in the home that keeps the theme which was chosen by ``/theme``."""


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme. ``codes`` are escape codes by tone. ``code_theme`` is the Pygments style of code. ``input_style`` are
    prompt_toolkit's styles of the input. Without ``coloured`` only bold, dim and reverse are used."""

    name: str
    codes: Mapping[str, str]
    code_theme: str
    input_style: Mapping[str, str]
    coloured: bool = True


_WEIGHTS = {"dim": "\x1b[2m", "bold": "\x1b[1m"}
_INPUT = {
    "status": "reverse",
    "prompt": "bold",
    "completion-menu.completion.current": "reverse",
}

DARK = Theme(
    "dark",
    {**_WEIGHTS, "warning": "\x1b[33m", "error": "\x1b[31m", "ok": "\x1b[32m"},
    "ansi_dark",
    {**_INPUT, "more": "ansibrightblack"},
)
LIGHT = Theme(
    "light",
    {**_WEIGHTS, "warning": "\x1b[35m", "error": "\x1b[31m", "ok": "\x1b[34m"},
    "ansi_light",
    {**_INPUT, "more": "ansigray"},
)
PLAIN = Theme("none", _WEIGHTS, "bw", {**_INPUT, "completion-menu": "noinherit"}, coloured=False)

THEMES: Mapping[str, Theme] = {theme.name: theme for theme in (DARK, LIGHT, PLAIN)}
"""The themes by name: for dark terminals, for light ones, and without colours."""


def chosen_theme(setting: str, home: Path | None, environ: Mapping[str, str] = os.environ) -> Theme:
    """Return the theme to use: none with ``NO_COLOR``, else the one chosen by ``/theme``, else that of the settings."""
    if environ.get("NO_COLOR"):
        return PLAIN
    name = setting
    if home is not None:
        with suppress(OSError, UnicodeDecodeError):
            name = (home / CHOICE_FILE).read_text(encoding="utf-8").strip()
    return THEMES.get(name) or THEMES.get(setting) or DARK


def store_theme(theme: Theme, home: Path) -> bool:
    """Keep the theme for later sessions. Returns False if it cannot be kept."""
    try:
        (home / CHOICE_FILE).write_text(f"{theme.name}\n", encoding="utf-8")
    except OSError:
        return False
    return True
