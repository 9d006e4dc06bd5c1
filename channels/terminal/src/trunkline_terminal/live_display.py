"""The live region: what still changes, drawn above the input line. It prints nothing and reads no key."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from trunkline_terminal import text_format
from trunkline_terminal.ansi_style import AnsiStyle
from trunkline_terminal.choice_list import Picker

if TYPE_CHECKING:
    from trunkline_terminal.markdown import MarkdownStream

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

QUEUED_ROWS = 4
"""The largest number of queued messages that are shown."""


class LiveRegion:
    """The lines that are drawn. ``width`` and ``room`` give the columns and the lines that it may use.

    ``stream`` is the answer that arrives, ``reasoning`` the model's reasoning, ``queued`` the messages that wait for
    the running turn, ``pane`` the lines of an open pane, ``picker`` an open list. While ``asking`` a person is asked,
    and no clock runs, because it would hurry the person.
    """

    def __init__(self, paint: AnsiStyle, width: Callable[[], int], room: Callable[[], int]) -> None:
        self.paint, self._width, self._room = paint, width, room
        self._tools: dict[str, tuple[str, float]] = {}
        self._progress: dict[str, str] = {}
        self.stream: MarkdownStream | None = None
        self.reasoning = ""
        self.queued: Sequence[str] = ()
        self.pane: Sequence[str] = ()
        self.picker: Picker | None = None
        self.asking = False
        self._busy_since: float | None = None

    @property
    def moves(self) -> bool:
        """Report whether a clock runs."""
        return bool(self._tools) or self._busy_since is not None

    def busy(self, turns: int) -> None:
        """Run the clock while there are turns."""
        if not turns:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = monotonic()

    def tool_started(self, call: str, label: str) -> None:
        """A tool runs."""
        self._tools[call] = (label, monotonic())

    def tool_progressed(self, call: str, line: str) -> None:
        """A tool runs on, with this line of output."""
        self._progress[call] = line

    def tool_ended(self, call: str) -> None:
        """A tool ended."""
        self._tools.pop(call, None)
        self._progress.pop(call, None)

    def draw(self) -> str:
        """The lines, with escape codes."""
        room = self._room()
        if self.picker is not None:
            return "\n".join(
                self.paint(line, "bold" if current else "dim")
                for line, current in self.picker.lines(self._width(), room)
            )
        below = [*self._queued_lines(), *self._pane_lines(room // 2)]
        running = self._tools if not self.asking else ()
        lines = [line for call in running for line in self._tool_lines(call)]
        lines = [*lines, *below][-room:]
        if self.stream is not None:
            lines = [*self.stream.tail(room - len(lines)), *lines]
        elif self.reasoning:
            tail = self.reasoning.split("\n")[-max(room - len(lines), 1) :]
            lines = [*(self.paint(line[-self._width() :], "dim") for line in tail), *lines]
        if len(lines) == len(below) and self._busy_since is not None and not self.asking:
            took = text_format.format_duration(monotonic() - self._busy_since)
            lines = [self.paint(f"{self._spin()} {took}", "dim"), *below]
        return "\n".join(lines)

    def _queued_lines(self) -> list[str]:
        shown = self.queued[:QUEUED_ROWS]
        lines = [
            f"{number} queued: {text_format.shorten(text, max(self._width() - 12, 4))}"
            for number, text in enumerate(shown, 1)
        ]
        if len(self.queued) > len(shown):
            lines.append(f"… and {len(self.queued) - len(shown)} more: /queue")
        if lines and self._width() > 60:
            lines.append("Alt-↑ takes the last one back, /drop N cancels one.")
        return [self.paint(line, "dim") for line in lines]

    def _pane_lines(self, room: int) -> list[str]:
        lines = [text_format.fit(line, self._width()) for line in self.pane[: max(room, 2)]]
        return [self.paint(line, "bold" if number == 0 else "plain") for number, line in enumerate(lines)]

    def _tool_lines(self, call: str) -> list[str]:
        """The line of a running tool, and below it the last line of its output."""
        label, began = self._tools[call]
        took = text_format.format_duration(monotonic() - began)
        lines = [f"{self._spin()} {text_format.shorten(label, self._width() - len(took) - 4)}  {took}"]
        if progress := self._progress.get(call):
            lines.append(f"  {text_format.shorten(progress, self._width() - 4)}")
        return [self.paint(line, "dim") for line in lines]

    def _spin(self) -> str:
        return SPINNER[int(monotonic() * 5) % len(SPINNER)]
