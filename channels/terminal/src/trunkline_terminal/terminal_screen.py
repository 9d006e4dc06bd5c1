"""The interactive screen: finished text scrolls up for good, what still grows is drawn above the input line.

One program owns the bottom of the terminal (prompt_toolkit); it redraws only what changed, so nothing flickers, and
the person can type while an answer comes. Knows no gateway.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from prompt_toolkit.application import Application, get_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import DynamicStyle, Style

from trunkline import printable
from trunkline.api.text import wrap_text
from trunkline_terminal import text_format
from trunkline_terminal.ansi_style import AnsiStyle
from trunkline_terminal.choice_list import Picker
from trunkline_terminal.input_files import mention_of_paste
from trunkline_terminal.input_history import earlier_inputs, open_history
from trunkline_terminal.input_keys import build_keys
from trunkline_terminal.layout import build_layout
from trunkline_terminal.live_display import LiveRegion
from trunkline_terminal.open_prompt import OpenPrompt
from trunkline_terminal.screen import Prompt, StatusLine, T, Tone
from trunkline_terminal.settings import TerminalSettings
from trunkline_terminal.slash_completer import SlashCompleter, is_completed_while_typing
from trunkline_terminal.theme import Theme, chosen_theme, store_theme

if TYPE_CHECKING:
    from trunkline_terminal.markdown import MarkdownStream

REDRAW = 0.05
"""Seconds between two redraws at the least."""

HOLD, SHOW = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronised output: the terminal shows what stands between the two at once, if it knows how."""

CLEAR = "\x1b[H\x1b[2J"
"""Empties the screen. What scrolled off it stays."""

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
        self._settings, self._home = settings, home
        self._typed, self._interrupted = typed, interrupted
        self._paint = AnsiStyle(chosen_theme(settings.theme, home))
        self._live = LiveRegion(self._paint, self._width, self._room)
        self._lines: list[str] = []
        self._more = anyio.Event()
        self._status = StatusLine()
        self._question: OpenPrompt[Any] | None = None
        self._kept = ""
        """What was being typed before the list was opened."""
        self._buffer = Buffer(
            history=open_history(home / HISTORY),
            completer=SlashCompleter(blocks, models),
            complete_while_typing=Condition(self._completes),
            multiline=True,
            accept_handler=self._accept,
        )
        self._buffer.on_text_changed += lambda _: self._narrow()
        self._app: Application[None] = Application(
            layout=build_layout(self._buffer, self._live.draw, self._prompt, self._status_line),
            key_bindings=build_keys(self._buffer, self),
            style=DynamicStyle(lambda: Style.from_dict(dict(self._paint.theme.input_style))),
            color_depth=lambda: None if self._paint.theme.coloured else ColorDepth.DEPTH_1_BIT,
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
            if self._live.moves:
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
            self._live.reasoning += printable(text)
            self._app.invalidate()

    def settle(self) -> None:
        self._settle_reasoning()
        stream, self._live.stream = self._live.stream, None
        if stream is not None:
            self._print(stream.finish())
            if stream.printed:
                self._print("\n")

    def reset(self) -> None:
        self._live.reasoning = ""
        if self._live.stream is not None and self._live.stream.drop():
            self.note("(The answer starts again; ignore the text above.)", "warning")
        self._app.invalidate()

    def tool_started(self, call: str, label: str) -> None:
        self._live.tool_started(call, printable(label))
        self._app.invalidate()

    def tool_progressed(self, call: str, line: str) -> None:
        self._live.tool_progressed(call, printable(line))
        self._app.invalidate()

    def tool_ended(self, call: str, label: str, *, failed: bool, seconds: float, output: str) -> None:
        self._live.tool_ended(call)
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
        self._live.busy(status.turns)
        self._status = status
        self._app.invalidate()

    def queue(self, messages: Sequence[str]) -> None:
        self._live.queued = [printable(text) for text in messages]
        self._app.invalidate()

    def pane(self, lines: Sequence[str]) -> None:
        self._live.pane = [printable(line) for line in lines]
        self._app.invalidate()

    def clear(self) -> None:
        self._print(CLEAR)

    def edit(self, text: str) -> None:
        before = self._buffer.text
        self._buffer.text = f"{text}\n{before}" if before.strip() and text else text or before
        self._buffer.cursor_position = len(self._buffer.text)
        self._app.invalidate()

    def insert(self, text: str) -> None:
        self._buffer.insert_text(text)
        self._app.invalidate()

    def theme(self, theme: Theme) -> bool:
        self._paint.theme = theme
        self._app.invalidate()
        return store_theme(theme, self._home)

    async def ask(self, question: str, prompt: Prompt[T]) -> T | None:
        """Ask on the input line. What was being typed is put aside and comes back."""
        self._print(self._paint.question(printable(question), self._width(), diff=prompt.diff) + "\n")
        if prompt.how != prompt.keys:
            self.note(prompt.how)
        asked, kept = OpenPrompt(prompt), self._put_aside()
        self._question, self._live.asking = asked, True
        self._app.invalidate()
        try:
            return await asked.answer()
        finally:
            self._question, self._live.asking = None, False
            self._buffer.text = kept
            self._app.invalidate()

    @property
    def can_choose(self) -> bool:
        """Report whether somebody can be asked to pick."""
        return True

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        """Let the person pick a line above the input. What was being typed is put aside and comes back."""
        if not choices:
            return None
        self._kept = self._put_aside()
        picker = self._live.picker = Picker(printable(title), [printable(choice) for choice in choices])
        self._app.invalidate()
        try:
            return await picker.picked()
        finally:
            if self.picker is picker:
                self._live.picker = None
                self._buffer.text = self._kept
                self._buffer.cursor_position = len(self._kept)
            self._app.invalidate()

    def _put_aside(self) -> str:
        """Empty the input and close an open list. Returns the text that comes back later."""
        kept, picker = self._buffer.text, self.picker
        if picker is not None:
            kept, self._live.picker = self._kept, None
            picker.close()
        self._buffer.reset()
        return kept

    # What is drawn -------------------------------------------------------------------------------------------

    def _markdown(self) -> "MarkdownStream":
        if self._live.stream is None:
            from trunkline_terminal.markdown import MarkdownStream

            theme = self._paint.theme
            code = self._settings.code_theme or theme.code_theme
            self._live.stream = MarkdownStream(self._width, self._room, code, coloured=theme.coloured)
        return self._live.stream

    def _settle_reasoning(self) -> None:
        text, self._live.reasoning = self._live.reasoning.strip(), ""
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

    def _prompt(self) -> str:
        if self.picker is not None:
            return "Filter › " if self._width() > 30 else "› "
        if self._question is not None:
            keys = self._question.prompt.keys
            return f"{keys} › " if self._width() > 30 else f"{keys.split()[-1]} › "
        return f"{printable(self._status.block) or 'trunkline'} › " if self._width() > 30 else "› "

    def _status_line(self) -> str:
        status = self._status
        state = "" if status.connected else "no connection"
        waiting = f"{status.turns - 1} waiting" if status.turns > 1 else ""
        parts = [
            status.mode,
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

    @property
    def picker(self) -> Picker | None:
        """The open list."""
        return self._live.picker

    def enter(self) -> None:
        """Enter: take from a list, answer a question, or send. Answers are not in the history of the input."""
        if self.picker is not None:
            self.picker.take()
        elif self._question is not None and not self._buffer.text.startswith("/"):
            self._accept(self._buffer)
            if self._question is not None:
                self._buffer.reset()
        else:
            self._buffer.validate_and_handle()

    def interrupt(self) -> None:
        """Ctrl-C: close a list, else empty the input while nothing runs, else end what runs."""
        if self.picker is not None:
            self.picker.close()
        elif self._buffer.text and not self._status.turns:
            self._buffer.reset()
        else:
            self._interrupted()

    def search_history(self) -> None:
        """Ctrl-R: pick an earlier input."""
        self._app.create_background_task(self._search_history())

    async def _search_history(self) -> None:
        earlier = earlier_inputs(self._buffer.history)
        found = await self.choose("Earlier input", earlier)
        if found is not None:
            self._buffer.text = earlier[found]
            self._buffer.cursor_position = len(self._buffer.text)

    def paste(self, text: str) -> None:
        """Insert a pasted text; a pasted name of a file becomes a mention of the file."""
        pasted = text.replace("\r\n", "\n").replace("\r", "\n")
        free = self.picker is None and self._question is None
        self._buffer.insert_text((free and mention_of_paste(pasted)) or pasted)

    def press(self, command: str) -> None:
        """Run a slash command for a key. What is typed is the text of ``/steer``."""
        if self._question is not None:
            return
        if command == "/steer":
            text = self._buffer.text.strip()
            if not text:
                return
            command = f"/steer {text}"
            self._buffer.reset(append_to_history=True)
        self._typed(command)

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

    def _completes(self) -> bool:
        """Report whether completions are offered while the person types."""
        free = self.picker is None and self._question is None
        return free and is_completed_while_typing(self._buffer.document)

    def _narrow(self) -> None:
        """Narrow the open list to what is typed."""
        if self.picker is not None:
            self.picker.narrow(self._buffer.text)


def _silent_output() -> Output:
    """The terminal, never asked where its cursor is: an answer that comes after more was printed would mislead."""
    output = get_app_session().output
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
