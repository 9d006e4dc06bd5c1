"""Screens of a terminal as one animated SVG: a strip of frames, which a style sheet moves past a window.

No script runs in it, so it plays wherever a picture is shown. A line that stands in several frames is drawn once.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

CELL, LINE, SIZE = 8.43, 18, 14
"""Width of a character, height of a line, and size of the letters, in pixels."""

MARGIN, BAR, CAPTION = 14, 30, 34
"""Pixels around the screen, of the window's title bar, and of the line below that says what is seen."""

INK, PAPER = "#d7dde8", "#14181f"
COLOURS = {
    "black": "#3b4252", "red": "#e06c75", "green": "#98c379", "yellow": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d7dde8", "bright_black": "#7a8496", "bright_red": "#ff7b86",
    "bright_green": "#b1e08f", "bright_yellow": "#ffd68a", "bright_blue": "#82c4ff", "bright_magenta": "#dd96f2",
    "bright_cyan": "#73d3df", "bright_white": "#ffffff",
}  # fmt: skip

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True, slots=True)
class ScreenFrame:
    """The lines that the screen showed for ``seconds``, with escape sequences, and the caption below them."""

    lines: tuple[str, ...]
    caption: str
    seconds: float


def render_svg(frames: Sequence[ScreenFrame], columns: int, rows: int, *, title: str) -> str:
    """The picture, which begins anew when it has ended."""
    width, height = MARGIN * 2 + columns * CELL, BAR + rows * LINE + MARGIN + CAPTION
    lines: dict[str, int] = {}
    strips = [_frame_svg(frame, number * height, lines, height) for number, frame in enumerate(frames)]
    drawn = "".join(f'<g id="l{number}">{_line(text)}</g>' for text, number in lines.items())
    size = f'width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{html.escape(title)}">',
            f"<style>{_animation_css(frames, height)}</style>",
            f"<defs>{drawn}</defs>",
            f'<rect width="100%" height="{height - CAPTION}" rx="8" fill="{PAPER}"/>',
            *(f'<circle cx="{20 + 20 * n}" cy="15" r="6" fill="#4a5263"/>' for n in range(3)),
            f'<g class="film">{"".join(strips)}</g>',
            "</svg>\n",
        )
    )


def _frame_svg(frame: ScreenFrame, top: int, lines: dict[str, int], height: int) -> str:
    used = []
    for row, line in enumerate(frame.lines):
        if not _text(line).plain.strip():
            continue
        number = lines.setdefault(line, len(lines))
        used.append(f'<use href="#l{number}" x="{MARGIN}" y="{top + BAR + row * LINE}"/>')
    caption = f'<text class="caption" x="50%" y="{top + height - 11}">{html.escape(frame.caption)}</text>'
    return f"<g>{''.join(used)}{caption}</g>"


def _text(line: str) -> Text:
    return AnsiDecoder().decode_line(line)


def _line(line: str) -> str:
    """A line of text: each run of one style where its first character stands."""
    text = _text(line)
    parts, column = [], 0
    for start, end, style in _runs(text):
        piece = text.plain[start:end]
        if piece.strip():
            parts.append(_run(piece, column, style))
        column += cell_len(piece)
    return "".join(parts)


def _run(piece: str, column: int, style: Style) -> str:
    x, width = column * CELL, cell_len(piece) * CELL
    ink, paper = _colour(style.color, INK), _colour(style.bgcolor, "")
    if style.reverse:
        ink, paper = PAPER, ink
    shown = html.escape(piece).replace(" ", "\N{NO-BREAK SPACE}")
    weight = ' font-weight="bold"' if style.bold else ""
    faint = ' opacity=".65"' if style.dim else ""
    behind = f'<rect x="{x:.1f}" width="{width:.1f}" height="{LINE}" fill="{paper}"/>' if paper else ""
    return f'{behind}<text x="{x:.1f}" y="14" textLength="{width:.1f}" fill="{ink}"{weight}{faint}>{shown}</text>'


def _runs(text: Text) -> list[tuple[int, int, Style]]:
    """The stretches of one style, from left to right."""
    marks = sorted({0, len(text.plain), *(edge for span in text.spans for edge in (span.start, span.end))})
    found = []
    for start, end in pairwise(marks):
        styles = [span.style for span in text.spans if span.start <= start and end <= span.end]
        found.append(
            (start, end, Style.combine([Style(), *(one for one in styles if isinstance(one, Style))]))
        )
    return found


def _colour(colour: object, otherwise: str) -> str:
    name = getattr(colour, "name", "default")
    if name == "default" or colour is None:
        return otherwise
    return COLOURS.get(name) or colour.get_truecolor().hex  # type: ignore[attr-defined]


def _animation_css(frames: Sequence[ScreenFrame], height: int) -> str:
    """Each frame stands still for its time, then the strip jumps to the next."""
    whole = sum(frame.seconds for frame in frames)
    at, steps = 0.0, []
    for number, frame in enumerate(frames):
        steps.append(f"{at / whole * 100:.3f}%{{transform:translateY({-number * height}px)}}")
        at += frame.seconds
    return (
        f"text{{font:{SIZE}px {FONT};white-space:pre}}"
        "text.caption{text-anchor:middle;fill:#57606a;font:15px system-ui,sans-serif}"
        "@media(prefers-color-scheme:dark){text.caption{fill:#9aa4b2}}"
        f".film{{animation:film {whole:.1f}s step-end infinite}}"
        f"@keyframes film{{{''.join(steps)}}}"
    )
