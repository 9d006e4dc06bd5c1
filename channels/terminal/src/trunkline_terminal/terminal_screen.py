"""The interactive screen: finished text scrolls up for good, what still grows is drawn above the input line.

One program owns the bottom of the terminal (prompt_toolkit); it redraws only what changed, so nothing flickers, and
the person can type while an answer comes. Knows no gateway.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic

import anyio
from prompt_toolkit.application import Application, get_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

from trunkline import printable
from trunkline.api.text import wrap_text
from trunkline_terminal import text_format
from trunkline_terminal.ansi_style import AnsiStyle
from trunkline_terminal.layout import STYLE, build_layout
from trunkline_terminal.screen import Prompt, StatusLine, T, Tone
from trunkline_terminal.settings import TerminalSettings
from trunkline_terminal.slash_completer import SlashCompleter, complete_at_once

if TYPE_CHECKING:
    from trunkline_terminal.markdown import MarkdownStream

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
REDRAW = 0.05
"""Seconds between two redraws at the least."""

HOLD, SHOW = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronised output: the terminal shows what stands between the two at once, if it knows how."""

HISTORY = "terminal_history"


class TerminalScreen:
    """The screen. ``typed`` takes each line entered, ``interrupted`` is called for Ctrl-C."""

    def __init__(
        self,
        settings: TerminalSettings,
        home: Path,
        *,
        typed: Callable[[str], None],
        interrupted: Callable[[], None],
        blocks: Callable[[], Sequence[str]],
        models: Callable[[], Sequence[str]],
    ) -> None:
        self._settings, self._typed, self._interrupted = settings, typed, interrupted
        self._paint = AnsiStyle()
        self._lines: list[str] = []
        self._more = anyio.Event()
        self._stream: MarkdownStream | None = None
        self._reasoning = ""
        self._tools: dict[str, tuple[str, float]] = {}
        self._progress: dict[str, str] = {}
        self._status = StatusLine()
        self._busy_since = 0.0
        self._question: _OpenPrompt[Any] | None = None
        self._kept = ""
        self._buffer = Buffer(
            history=open_history(home / HISTORY),
            completer=SlashCompleter(blocks, models),
            complete_while_typing=Condition(lambda: self._buffer.text.startswith("/")),
            multiline=True,
            accept_handler=self._accept,
        )
        self._app: Application[None] = Application(
            layout=build_layout(self._buffer, self._live, self._prompt, self._status_line),
            key_bindings=self._keys(),
            style=STYLE,
            output=_silent_output(),
            erase_when_done=True,
            min_redraw_interval=REDRAW,
        )

    # Life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Own the terminal until ``leave``, or until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._print_loop)
            tasks.start_soon(self._redraw_loop)
            with suppress(EOFError):  # the terminal is gone
                await self._app.run_async()
            tasks.cancel_scope.cancel()
        self.flush()

    def leave(self) -> None:
        """End ``run``."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def _print_loop(self) -> None:
        with set_app(self._app):
            while True:
                await self._more.wait()
                self._more = anyio.Event()
                if self._app.is_running and not self._app.is_done:
                    self._print_above()

    def _print_above(self) -> None:
        """Print above what is drawn, in one go. The terminal stays raw: keys pressed meanwhile must not be echoed."""
        renderer, output = self._app.renderer, self._app.output
        output.write_raw(HOLD)
        renderer.erase()
        self.flush()
        renderer.render(self._app, self._app.layout)
        output.write_raw(SHOW)
        output.flush()

    def flush(self) -> None:
        """Print what waits to be printed; only while nothing is drawn."""
        text, self._lines = "".join(self._lines), []
        if text:
            output = get_app_session().output
            output.write_raw(text)
            output.flush()

    def _print(self, text: str) -> None:
        if text:
            self._lines.append(text)
            self._more.set()
            self._app.invalidate()

    async def _redraw_loop(self) -> None:
        """Redraw while something runs, so that the clock and the spinner move."""
        while True:
            await anyio.sleep(0.2)
            if self._status.turns or self._tools:
                self._app.invalidate()

    # What the session shows ----------------------------------------------------------------------------------

    def note(self, text: str, tone: Tone = "dim") -> None:
        self._print(self._paint(self._fit(text), tone) + "\n")

    def answer(self, text: str) -> None:
        if text:
            self._settle_reasoning()
            self._print(self._markdown().feed(printable(text)))
            self._app.invalidate()

    def reasoning(self, text: str) -> None:
        if self._settings.show_reasoning:
            self._reasoning += printable(text)
            self._app.invalidate()

    def settle(self) -> None:
        self._settle_reasoning()
        if self._stream is not None:
            self._print(self._stream.finish())
            if self._stream.printed:
                self._print("\n")
            self._stream = None

    def reset(self) -> None:
        self._reasoning = ""
        if self._stream is not None and self._stream.drop():
            self.note("(The answer starts again; ignore the text above.)", "warning")
        self._app.invalidate()

    def tool_started(self, call: str, label: str) -> None:
        self._tools[call] = (printable(label), monotonic())
        self._app.invalidate()

    def tool_progressed(self, call: str, line: str) -> None:
        self._progress[call] = printable(line)
        self._app.invalidate()

    def tool_ended(self, call: str, label: str, *, failed: bool, seconds: float, output: str) -> None:
        self._tools.pop(call, None)
        self._progress.pop(call, None)
        mark = self._paint("✗", "error") if failed else self._paint("✓", "ok")
        took = text_format.format_duration(seconds)
        lines = [f"{text_format.shorten(printable(label), self._width() - len(took) - 4)}  {took}"]
        lines += [f"  {line}" for line in text_format.fold_output(printable(output), self._width() - 4)]
        self._print(f"{mark} {self._paint(printable(chr(10).join(lines)), 'dim')}\n")

    def message(self, text: str) -> None:
        first, *rest = printable(text).split("\n")
        lines = [f"› {first}", *(f"  {line}" for line in rest)]
        self._print(self._paint(wrap_text("\n".join(lines), self._width()), "bold") + "\n")

    def status(self, status: StatusLine) -> None:
        if status.turns and not self._status.turns:
            self._busy_since = monotonic()
        self._status = status
        self._app.invalidate()

    async def ask(self, question: str, prompt: Prompt[T]) -> T | None:
        """Ask on the input line. What was being typed is put aside and comes back."""
        self._print(self._paint.question(printable(question), self._width()) + "\n")
        if prompt.how != prompt.keys:
            self.note(prompt.how)
        asked = _OpenPrompt(prompt)
        self._question, self._kept = asked, self._buffer.text
        self._buffer.reset()
        self._app.invalidate()
        try:
            return await asked.answer()
        finally:
            self._question = None
            self._buffer.text, self._kept = self._kept, ""
            self._app.invalidate()

    # What is drawn -------------------------------------------------------------------------------------------

    def _markdown(self) -> "MarkdownStream":
        if self._stream is None:
            from trunkline_terminal.markdown import MarkdownStream

            self._stream = MarkdownStream(self._width, self._room, self._settings.code_theme)
        return self._stream

    def _settle_reasoning(self) -> None:
        text, self._reasoning = self._reasoning.strip(), ""
        if text:
            self._print(self._paint(text, "dim") + "\n\n")

    def _fit(self, text: str) -> str:
        """A text of others on lines that fit."""
        return wrap_text(printable(text), self._width())

    def _width(self) -> int:
        return max(self._size()[0] - 1, 8)

    def _room(self) -> int:
        """Lines for the live region, so that input and status line always fit below."""
        return max(self._size()[1] - 6 - self._buffer.document.line_count, 3)

    def _size(self) -> tuple[int, int]:
        columns, rows = shutil.get_terminal_size()
        if self._app.is_running:
            size = self._app.output.get_size()
            columns, rows = size.columns, size.rows
        return columns, rows

    def _live(self) -> str:
        room = self._room()
        running = self._tools if self._question is None else ()  # a clock would hurry the person
        lines = [line for call in running for line in self._tool_lines(call)][-room:]
        if self._stream is not None:
            lines = [*self._stream.tail(room - len(lines)), *lines]
        elif self._reasoning:
            tail = self._reasoning.split("\n")[-(room - len(lines)) :]
            lines = [*(self._paint(line[-self._width() :], "dim") for line in tail), *lines]
        if not lines and self._status.turns and self._question is None:
            lines = [
                self._paint(
                    f"{self._spin()} {text_format.format_duration(monotonic() - self._busy_since)}", "dim"
                )
            ]
        return "\n".join(lines)

    def _tool_lines(self, call: str) -> list[str]:
        """The line of a running tool, and below it the last line of its output."""
        label, began = self._tools[call]
        took = text_format.format_duration(monotonic() - began)
        lines = [f"{self._spin()} {text_format.shorten(label, self._width() - len(took) - 4)}  {took}"]
        if progress := self._progress.get(call):
            lines.append(f"  {text_format.shorten(progress, self._width() - 4)}")
        return [self._paint(line, "dim") for line in lines]

    def _spin(self) -> str:
        return SPINNER[int(monotonic() * 5) % len(SPINNER)]

    def _prompt(self) -> str:
        if self._question is not None:
            keys = self._question.prompt.keys
            return f"{keys} › " if self._width() > 30 else f"{keys.split()[-1]} › "
        return f"{printable(self._status.block) or 'trunkline'} › " if self._width() > 30 else "› "

    def _status_line(self) -> str:
        status = self._status
        state = "" if status.connected else "no connection"
        waiting = f"{status.turns - 1} waiting" if status.turns > 1 else ""
        parts = [
            status.model,
            status.context,
            status.cost,
            status.tokens,
        ]
        first = filter(None, (status.block, state, waiting))
        line = text_format.status_bar(
            first, status.title or "new conversation", filter(None, parts), self._width() - 1
        )
        return " " + printable(line)

    # Keys ----------------------------------------------------------------------------------------------------

    def _accept(self, buffer: Buffer) -> bool:
        """Take a line. Returns False, so that the input is emptied."""
        text = buffer.text
        if self._question is not None and not text.startswith("/"):
            if self._question.take(text):
                self.message(text)
            else:
                self.note(f"{self._question.prompt.hint}; Ctrl-C ends the turn.", "warning")
        elif text.strip():
            self.message(text)
            self._typed(text)
        return False

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            state = self._buffer.complete_state
            if state is not None and state.current_completion is not None:
                self._buffer.complete_state = None
            else:
                self._buffer.validate_and_handle()

        @keys.add("tab")
        def _tab(event: KeyPressEvent) -> None:
            if self._buffer.complete_state is not None:
                self._buffer.complete_next()
            else:
                complete_at_once(self._buffer)

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _newline(event: KeyPressEvent) -> None:
            self._buffer.newline(copy_margin=False)

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _interrupt(event: KeyPressEvent) -> None:
            if self._buffer.text and not self._status.turns:
                self._buffer.reset()
            else:
                self._interrupted()

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def _leave(event: KeyPressEvent) -> None:
            self.leave()

        return keys

    @property
    def typed_text(self) -> str:
        """The text of the input line."""
        return self._buffer.text


def _silent_output() -> Output:
    """The terminal, never asked where its cursor is: an answer that comes after more was printed would mislead."""
    output = get_app_session().output
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


class _OpenPrompt(Generic[T]):
    """A question that is open. Only a typed answer counts: Enter is neither a yes nor a no."""

    def __init__(self, prompt: Prompt[T]) -> None:
        self.prompt = prompt
        self._answered = anyio.Event()
        self._answer: T | None = None

    def take(self, text: str) -> bool:
        """Try a line as the answer. Returns whether it was one."""
        self._answer = self.prompt.read(text)
        if self._answer is None:
            return False
        self._answered.set()
        return True

    async def answer(self) -> T | None:
        """The answer, once it is there."""
        await self._answered.wait()
        return self._answer


class PrivateHistory(FileHistory):
    """prompt_toolkit's history file, without what begins with a space."""

    def store_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().store_string(string)


def open_history(path: Path) -> History:
    """Return the input history at this path, or one in main memory when the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))
