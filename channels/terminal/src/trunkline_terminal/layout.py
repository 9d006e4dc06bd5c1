"""The bottom of the interactive terminal: live region, input, completion menu, status line. Looks, no behaviour."""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_done
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.widgets import SearchToolbar

MENU_ROWS = 8


def build_layout(
    buffer: Buffer, live: Callable[[], str], prompt: Callable[[], str], status: Callable[[], str]
) -> Layout:
    """The layout. ``live`` gives ANSI text, ``prompt`` what stands before the input, ``status`` plain text."""
    search = SearchToolbar()
    control = BufferControl(buffer, search_buffer_control=search.control, preview_search=True)

    def line_prefix(line: int, wrapped: int) -> StyleAndTextTuples:
        text = prompt()
        return [("class:prompt", text)] if line == wrapped == 0 else [("class:more", " " * len(text))]

    def input_height() -> Dimension:
        return Dimension(min=MENU_ROWS) if buffer.complete_state is not None else Dimension()

    region = Window(FormattedTextControl(lambda: ANSI(live())), dont_extend_height=True)
    entry = Window(
        control, get_line_prefix=line_prefix, wrap_lines=True, dont_extend_height=True, height=input_height
    )
    line = Window(FormattedTextControl(status), height=1, style="class:status", dont_extend_height=True)
    body = HSplit([ConditionalContainer(region, Condition(lambda: bool(live()))), entry, search, line])
    menu = Float(
        ConditionalContainer(CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), ~is_done),
        xcursor=True,
        ycursor=True,
    )
    return Layout(FloatContainer(body, [menu]), focused_element=entry)
