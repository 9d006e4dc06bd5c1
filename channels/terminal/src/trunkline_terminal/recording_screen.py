"""A screen for tests: it keeps what it was asked to show."""

from collections.abc import Sequence

from trunkline_terminal.screen import Prompt, StatusLine, T, Tone
from trunkline_terminal.theme import Theme


class RecordingScreen:
    """A screen that keeps what it was asked to show, as (what, text) pairs. ``pick`` is the position that is picked
    from each list."""

    def __init__(self, allow: bool | None = None, reply: str | None = None, pick: int | None = None) -> None:
        self.shown: list[tuple[str, str]] = []
        self.statuses: list[StatusLine] = []
        self.allow, self.reply, self.pick = allow, reply, pick
        self.queued: Sequence[str] = ()
        self.pane_lines: Sequence[str] = ()
        self.chosen_theme: Theme | None = None

    def note(self, text: str, tone: Tone = "dim") -> None:
        self.shown.append(("note" if tone in ("dim", "plain") else tone, text))

    def answer(self, text: str) -> None:
        if text:
            self.shown.append(("answer", text))

    def reasoning(self, text: str) -> None:
        self.shown.append(("reasoning", text))

    def settle(self) -> None:
        if self.shown and self.shown[-1] != ("settle", ""):
            self.shown.append(("settle", ""))

    def reset(self) -> None:
        self.shown.append(("reset", ""))

    def tool_started(self, call: str, label: str) -> None:
        self.shown.append(("started", label))

    def tool_progressed(self, call: str, line: str) -> None:
        self.shown.append(("progress", line))

    def tool_ended(self, call: str, label: str, *, failed: bool, seconds: float, output: str) -> None:
        self.shown.append(("failed" if failed else "done", label))

    def message(self, text: str) -> None:
        self.shown.append(("message", text))

    def status(self, status: StatusLine) -> None:
        self.statuses.append(status)

    async def ask(self, question: str, prompt: Prompt[T]) -> T | None:
        self.shown.append(("question", question))
        if self.reply is not None:
            return prompt.read(self.reply)
        return None if self.allow is None else prompt.read("y" if self.allow else "n")

    @property
    def can_choose(self) -> bool:
        return self.pick is not None

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        self.shown.append(("choices", "\n".join([title, *choices])))
        return self.pick

    def queue(self, messages: Sequence[str]) -> None:
        self.queued = tuple(messages)

    def pane(self, lines: Sequence[str]) -> None:
        self.pane_lines = tuple(lines)

    def edit(self, text: str) -> None:
        self.shown.append(("edit", text))

    def insert(self, text: str) -> None:
        self.shown.append(("insert", text))

    def clear(self) -> None:
        self.shown.append(("clear", ""))

    def theme(self, theme: Theme) -> bool:
        self.chosen_theme = theme
        return True

    def all(self, what: str) -> list[str]:
        """The texts of one kind."""
        return [text for kind, text in self.shown if kind == what]

    @property
    def text(self) -> str:
        """The answer as shown, without what was reset."""
        parts: list[str] = []
        for kind, text in self.shown:
            if kind == "answer":
                parts.append(text)
            elif kind == "reset":
                parts.clear()
        return "".join(parts)
