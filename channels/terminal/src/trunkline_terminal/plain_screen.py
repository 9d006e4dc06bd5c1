"""The plain screen: for pipes and terminals that can do nothing but print. Never writes an escape code.

What the agent says goes to ``out``; tools, notes and tokens go to ``side``. Where nobody watches (``hold``), a step's
text is written when it is final, so a step that was asked again leaves no false start in the output.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TextIO

from trunkline import printable
from trunkline_terminal import text_format
from trunkline_terminal.screen import Prompt, StatusLine, T, Tone
from trunkline_terminal.theme import Theme

Read = Callable[[str], Awaitable[str | None]]
"""Reads a line behind a prompt; None at the end of the input."""


class PlainScreen:
    """A screen that prints."""

    def __init__(self, out: TextIO, side: TextIO, *, hold: bool, read: Read | None = None) -> None:
        self._out, self._side, self._hold, self._read = out, side, hold, read
        self._held = ""
        self._open_line = self._said = False

    def note(self, text: str, tone: Tone = "dim") -> None:
        """Tones make no difference here."""
        self._end_line()
        self._write(self._side, printable(text) + "\n")

    def answer(self, text: str) -> None:
        """Printed as it comes, or held until it is final."""
        if self._hold:
            self._held += text
        else:
            self._say(text)

    def reasoning(self, text: str) -> None:
        """Not shown: it would stand among the answer."""

    def settle(self) -> None:
        """Print what was held, and end the line."""
        text, self._held = self._held, ""
        self._say(text)
        self._end_line()
        self._said = False

    def reset(self) -> None:
        """Held text goes; printed text is declared void."""
        self._held = ""
        if self._said:
            self._said = False
            self.note("(The answer starts again; ignore the text above.)")

    def tool_started(self, call: str, label: str) -> None:
        """Shown when it ends."""

    def tool_progressed(self, call: str, line: str) -> None:
        """Not shown: a line cannot be replaced here."""

    def tool_ended(self, call: str, label: str, *, failed: bool, seconds: float, output: str) -> None:
        """A line, with the first words of what went wrong; the first lines of a result."""
        why = f": {text_format.shorten(output, 100)}" if failed and output else ""
        lines = [f"[{'failed' if failed else 'ok'}] {label} ({text_format.format_duration(seconds)}){why}"]
        lines += [] if failed else [f"  {line}" for line in text_format.fold_output(output, 100)]
        self.note("\n".join(lines))

    def message(self, text: str) -> None:
        """Marked as the person's."""
        self.note(f"> {text}")

    def status(self, status: StatusLine) -> None:
        """There is no status line."""

    async def ask(self, question: str, prompt: Prompt[T]) -> T | None:
        """Asked on a dumb terminal only; through a pipe nobody can be asked. Only a typed answer counts; the end of the
        input is none."""
        self.note(question)
        while self._read is not None and (line := await self._read(f"{prompt.how} › ")) is not None:
            if (found := prompt.read(line)) is not None:
                return found
        return None

    @property
    def can_choose(self) -> bool:
        """Report whether somebody can be asked to pick."""
        return self._read is not None

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        """A list with numbers; a number picks, an empty line and the end of the input pick nothing."""
        if not choices or self._read is None:
            return None
        self.note("\n".join([title, *(f"{number:>3}  {choice}" for number, choice in enumerate(choices, 1))]))
        while line := (await self._read(f"Number, 1 to {len(choices)} › ") or "").strip():
            if line.isascii() and line.isdigit() and 0 < int(line) <= len(choices):
                return int(line) - 1
        return None

    def queue(self, messages: Sequence[str]) -> None:
        """Not shown: ``/queue`` lists them."""

    def pane(self, lines: Sequence[str]) -> None:
        """There is no pane."""

    def edit(self, text: str) -> None:
        """Printed: there is no input line that could be filled."""
        if text:
            self.note(text)

    def insert(self, text: str) -> None:
        """Printed: there is no input line that could be filled."""
        self.note(text)

    def clear(self) -> None:
        """Printed lines stay."""

    def theme(self, theme: Theme) -> bool:
        """There are no colours."""
        return False

    def _say(self, text: str) -> None:
        if text:
            self._said = True
            self._write(self._out, printable(text))
            self._open_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._open_line:
            self._write(self._out, "\n")
        self._open_line = False

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text)
        stream.flush()
