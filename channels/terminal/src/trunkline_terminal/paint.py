"""Colours for short lines, as escape codes, without a library. Obeys ``NO_COLOR``."""

import os
from collections.abc import Mapping

from trunkline_terminal.screen import Tone

_RESET = "\x1b[0m"
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "ok": "\x1b[32m"}
_WEIGHTS = {"dim": "\x1b[2m", "bold": "\x1b[1m"}


class Paint:
    """Wraps text in codes. Weights stay with ``NO_COLOR``; colours go."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._codes = dict(_WEIGHTS) if environ.get("NO_COLOR") else {**_WEIGHTS, **_COLOURS}

    def __call__(self, text: str, tone: Tone | str) -> str:
        """The text, each line by itself, so that a cut between lines leaves no colour behind."""
        code = self._codes.get(tone)
        if code is None:
            return text
        return "\n".join(f"{code}{line}{_RESET}" if line else line for line in text.split("\n"))
