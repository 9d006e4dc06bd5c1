"""Colours for short lines, as escape codes, without a library."""

from trunkline.api.text import QUOTED, wrap_text
from trunkline_terminal.diff_display import LEAST_WIDTH, two_columns
from trunkline_terminal.screen import Tone
from trunkline_terminal.theme import Theme, chosen_theme

_RESET = "\x1b[0m"
_DIFF = {"+": "ok", "-": "error", "@": "dim"}


class AnsiStyle:
    """Wraps text in the codes of a theme."""

    def __init__(self, theme: Theme | None = None) -> None:
        self.theme = theme or chosen_theme("dark", None)

    def question(self, text: str, width: int, *, diff: bool = False) -> str:
        """A question on lines of this width. With ``diff`` what it quotes is a diff: in two columns if the width
        allows, else in the colours of a diff."""
        lines = text.split("\n")
        quoted = [line.removeprefix(QUOTED.rstrip()).removeprefix(" ") for line in lines if _is_quoted(line)]
        if not diff or width < LEAST_WIDTH or not any(line.startswith("@@") for line in quoted):
            return "\n".join(self(wrap_text(line, width), _tone_of(line)) for line in lines)
        first = next(number for number, line in enumerate(lines) if _is_quoted(line))
        others = [self(wrap_text(line, width), "warning") for line in lines if not _is_quoted(line)]
        return "\n".join([*others[:first], two_columns("\n".join(quoted), width, self), *others[first:]])

    def __call__(self, text: str, tone: Tone | str) -> str:
        """The text, each line by itself, so that a cut between lines leaves no colour behind."""
        code = self.theme.codes.get(tone)
        if code is None:
            return text
        return "\n".join(f"{code}{line}{_RESET}" if line else line for line in text.split("\n"))


def _is_quoted(line: str) -> bool:
    return line.startswith(QUOTED.rstrip())


def _tone_of(line: str) -> Tone | str:
    """The tone of a line of a question: what is quoted there may be a line of a diff."""
    quoted = line.removeprefix(QUOTED)
    if quoted == line:
        return "warning"
    return "dim" if quoted.startswith(("---", "+++")) else _DIFF.get(quoted[:1], "plain")
