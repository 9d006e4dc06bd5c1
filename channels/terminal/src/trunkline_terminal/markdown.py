"""Markdown that arrives piece by piece, turned into lines for a terminal.

Finished top-level blocks are given out once, to be printed for good; the block that still grows is shown by ``tail``.
A long code block or list is given out in parts, so the part that is drawn again and again stays small.
This module is the only one that imports rich; it is loaded at the first answer.
"""

import io
import re
from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, Paragraph
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

_STYLES = Theme({"markdown.code": "cyan", "markdown.code_block": "none"})
_INVISIBLE = re.compile(r"\x1b\[[0-9;]*m|\s")
SMALL = 4_000
"""Up to so many characters of a growing block, every new line is looked at; beyond that, after each eighth more."""

SLOW = 0.02
"""Seconds of drawing the growing block beyond which it is drawn less often, so that drawing never takes over."""

_URL = r"https?://[^\s<>()\[\]\"'`]+"


class _Code(CodeBlock):
    """Code in the terminal's own background and without padding, so that it can be copied."""

    label = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_Code":
        language, _, more = token.info.strip().partition(" ")
        block = cls(language or "text", markdown.code_theme)
        block.label = f"{language} {more}" if more else ""
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        if self.label:
            yield Text(self.label, style="dim")
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")


class _Heading(Heading):
    """A heading at the left margin."""

    LEVEL_ALIGN: ClassVar = {}


class _Paragraph(Paragraph):
    """A paragraph with its bare addresses marked."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.highlight_regex(_URL, "markdown.link_url")
        yield from super().__rich_console__(console, options)


class _Document(Markdown):
    """rich's Markdown, but HTML is shown as the text it is, and so are images with their address."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "paragraph_open": _Paragraph,
    }

    def __init__(self, source: str, theme: str) -> None:
        super().__init__("", code_theme=theme, hyperlinks=False)
        self.parsed = _parser().parse(source)


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


_BLOCKS = _parser().disable("inline")
"""Finds blocks without looking into them."""


def blocks(source: str) -> list[Token]:
    """The top-level blocks of a text; ``map`` holds their first and their last line (exclusive)."""
    return [token for token in _BLOCKS.parse(source) if token.level == 0 and token.map and token.nesting >= 0]


def render(source: str, width: int, theme: str = "ansi_dark", *, coloured: bool = True) -> list[str]:
    """The lines of a Markdown text with colours as the terminal can show them (``NO_COLOR`` is obeyed)."""
    console = Console(
        file=io.StringIO(),
        width=max(width, 8),
        force_terminal=True,
        no_color=None if coloured else True,
        highlight=False,
        legacy_windows=False,
        theme=_STYLES,
    )
    with console.capture() as capture:
        try:
            console.print(_Document(source, theme))
        except Exception:  # whatever a model writes must come out; rich has tripped over odd nesting before
            console.print(Text(source))
    lines = [line.rstrip(" ") for line in capture.get().split("\n")]
    shown = [number for number, line in enumerate(lines) if _INVISIBLE.sub("", line)]
    return lines[shown[0] : shown[-1] + 1] if shown else []


class MarkdownStream:
    """Renders the Markdown of an answer while it arrives.

    ``width`` and ``window`` give the terminal's columns and how many lines the growing block may take.
    """

    def __init__(
        self, width: Callable[[], int], window: Callable[[], int], theme: str, *, coloured: bool = True
    ) -> None:
        self._width, self._window, self._theme, self._coloured = width, window, theme, coloured
        self._pending = ""
        self._tail: tuple[str, int, list[str]] = ("", 0, [])
        self._joined = False
        self._look_again = 0
        self._tail_due = 0.0
        self.printed = False

    def feed(self, text: str) -> str:
        """Take in more text; returns what to print for good, with line ends, or nothing."""
        self._pending += text
        if "\n" not in text or len(self._pending) < self._look_again:
            return ""
        printed = self._finished_blocks() + self._overflow()
        size = len(self._pending)
        self._look_again = 0 if size < SMALL else size + size // 8
        return printed

    def finish(self) -> str:
        """The text is complete; returns the rest."""
        rest = self._print(self._pending)
        self._forget()
        return rest

    def drop(self) -> bool:
        """Forget what was not printed. Returns whether anything had been printed already."""
        self._forget()
        printed, self.printed = self.printed, False
        return printed

    def _forget(self) -> None:
        self._pending, self._joined = "", False
        self._look_again, self._tail, self._tail_due = 0, ("", 0, []), 0.0

    def tail(self, lines: int) -> list[str]:
        """The last lines of what is not printed yet."""
        if self._tail[:2] != (self._pending, self._width()) and monotonic() >= self._tail_due:
            self._render_tail()
        return self._tail[2][-lines:] if lines > 0 else []

    def _render_tail(self) -> None:
        width, began = self._width(), monotonic()
        rendered = self._render(self._pending) if self._pending.strip() else []
        self._tail = (self._pending, width, rendered)
        took = monotonic() - began
        self._tail_due = began + (took * 10 if took > SLOW else 0.0)

    def _finished_blocks(self) -> str:
        found = blocks(self._pending)
        if len(found) < 2:
            return ""
        start = _first(found[-1])
        done, self._pending = _cut(self._pending, start)
        return self._print(done)

    def _overflow(self) -> str:
        """Gives out the upper part of a code block or list that outgrows the window."""
        window = max(self._window(), 4)
        if self._pending.count("\n") <= window:
            return ""
        found = blocks(self._pending)
        if found and found[-1].type == "fence":
            return self._split_fence(found[-1], keep=window // 2)
        if found and found[-1].type in ("bullet_list_open", "ordered_list_open"):
            return self._split_list(keep=window // 2)
        return ""

    def _split_fence(self, token: Token, keep: int) -> str:
        lines = self._pending.splitlines(keepends=True)
        opening, body = lines[_first(token)], lines[_first(token) + 1 :]
        if body and _closes(body[-1], token.markup):
            return ""
        done, rest = body[:-keep], body[-keep:]
        printed = self._print(opening + "".join(done) + token.markup + "\n")
        language = token.info.strip().partition(" ")[0]
        self._pending, self._joined = f"{token.markup}{language}\n" + "".join(rest), True
        return printed

    def _split_list(self, keep: int) -> str:
        items = [token for token in _BLOCKS.parse(self._pending) if token.type == "list_item_open"]
        starts = [_first(item) for item in items if item.level == 1]
        last = self._pending.count("\n") - keep
        fit = [start for start in starts[1:] if start <= last]
        if not fit:
            return ""
        done, self._pending = _cut(self._pending, fit[-1])
        printed, self._joined = self._print(done), True
        return printed

    def _print(self, source: str) -> str:
        if not source.strip():
            return ""
        gap = "\n" if self.printed and not self._joined else ""
        self.printed, self._joined = True, False
        return gap + "".join(f"{line}\n" for line in self._render(source))

    def _render(self, source: str) -> list[str]:
        return render(source, self._width(), self._theme, coloured=self._coloured)


def _first(token: Token) -> int:
    return token.map[0] if token.map else 0


def _cut(source: str, line: int) -> tuple[str, str]:
    lines = source.splitlines(keepends=True)
    return "".join(lines[:line]), "".join(lines[line:])


def _closes(line: str, markup: str) -> bool:
    return bool(re.fullmatch(rf" {{0,3}}{re.escape(markup)}{re.escape(markup[0])}*\s*", line.rstrip("\n")))
