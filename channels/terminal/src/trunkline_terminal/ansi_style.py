"""Colours for short lines, as escape codes, without a library. Obeys ``NO_COLOR``."""

import os
from collections.abc import Mapping

from trunkline.api.text import QUOTED, wrap_text
from trunkline_terminal.screen import Tone

_RESET = "\x1b[0m"
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "ok": "\x1b[32m"}
_DIFF = {"+": "ok", "-": "error", "@": "dim"}
_WEIGHTS = {"dim": "\x1b[2m", "bold": "\x1b[1m"}


class AnsiStyle:
    """Wraps text in codes. Weights stay with ``NO_COLOR``; colours go."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._codes = dict(_WEIGHTS) if environ.get("NO_COLOR") else {**_WEIGHTS, **_COLOURS}

    def question(self, text: str, width: int) -> str:
        """A question on lines of this width, with the lines of a diff that it quotes in the colours of a diff."""
        return "\n".join(self(wrap_text(line, width), _tone_of(line)) for line in text.split("\n"))

    def __call__(self, text: str, tone: Tone | str) -> str:
        """The text, each line by itself, so that a cut between lines leaves no colour behind."""
        code = self._codes.get(tone)
        if code is None:
            return text
        return "\n".join(f"{code}{line}{_RESET}" if line else line for line in text.split("\n"))


def _tone_of(line: str) -> Tone | str:
    """The tone of a line of a question: what is quoted there may be a line of a diff."""
    quoted = line.removeprefix(QUOTED)
    if quoted == line:
        return "warning"
    return "dim" if quoted.startswith(("---", "+++")) else _DIFF.get(quoted[:1], "plain")
