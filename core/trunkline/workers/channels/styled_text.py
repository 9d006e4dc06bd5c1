"""Text with styles, made from Markdown, and cut into pieces that a service accepts. The service is not known here."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from markdown_it.token import Token

Style = Literal["bold", "italic", "strike", "code", "pre", "link", "quote"]

WHOLE: frozenset[Style] = frozenset({"code", "pre", "link"})
"""The styles whose text is cut only if it exceeds the limit by itself."""

INLINE_STYLES: dict[str, Style] = {"strong": "bold", "em": "italic", "s": "strike", "link": "link"}
BLOCK_STYLES: dict[str, Style] = {"heading": "bold", "blockquote": "quote"}
RULE = "———"


@dataclass(frozen=True, slots=True)
class StyledSpan:
    """A style of ``text[start:end]``. ``target`` is a link's address or the language of a code block."""

    style: Style
    start: int
    end: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class StyledText:
    """A text with its styles, in the order of their starts."""

    text: str
    spans: tuple[StyledSpan, ...] = ()


def utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 code units, in which some services count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse_markdown(text: str) -> StyledText:
    """Return what a reader sees of a Markdown text, with its styles. HTML is shown as it is written."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    return _Writer(text).write(parser.parse(text))


def cut_text(
    styled: StyledText, limit: int, measure: Callable[[str], int] = utf16_units
) -> tuple[StyledText, ...]:
    """Return a text in pieces of at most ``limit``, as ``measure`` counts. A piece ends after a paragraph, a line or a
    word, in this order. Code and links are cut only if they exceed the limit by themselves; a code block then goes on
    as a code block, from line to line. White space at a cut is dropped.
    """
    pieces, start = [], 0
    whole = tuple(span for span in styled.spans if span.style in WHOLE)
    while start < len(styled.text):
        end = _cut(styled.text, whole, start, _fitting(styled.text, start, limit, measure))
        kept = len(styled.text[start:end].rstrip())
        if kept:
            pieces.append(_part(styled, start, start + kept))
        start = end
        while start < len(styled.text) and styled.text[start] in "\n ":
            start += 1
    return tuple(pieces)


def _part(styled: StyledText, start: int, end: int) -> StyledText:
    """Return ``text[start:end]`` with the styles that it has there."""
    spans = (
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in styled.spans
        if span.start < end and span.end > start
    )
    return StyledText(styled.text[start:end], tuple(spans))


def _fitting(text: str, start: int, limit: int, measure: Callable[[str], int]) -> int:
    """Return the greatest end whose text from ``start`` is within the limit, at least one character."""
    low, high = start + 1, min(len(text), start + limit)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[start:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: str, whole: tuple[StyledSpan, ...], start: int, most: int) -> int:
    """Return where the piece from ``start`` ends, at most at ``most``. ``whole`` is what is not cut."""
    if most >= len(text):
        return len(text)
    near = tuple(span for span in whole if span.start < most and span.end > start)
    for separator in ("\n\n", "\n", " "):
        least = start + (most - start) // (2 if separator != " " else 4)
        end = _last_break(text, near, separator, least, most)
        if end is not None:
            return end
    inside = [span.start for span in near if start < span.start < most < span.end]
    if inside:
        return min(inside)
    line = text.rfind("\n", start + 1, most)
    return line + 1 if line > start else _between_graphemes(text, start, most)


def _last_break(
    text: str, whole: tuple[StyledSpan, ...], separator: str, least: int, most: int
) -> int | None:
    """Return the end of the last separator in this range that is in no code and in no link."""
    end = most + 1 if separator != "\n\n" else most
    while (at := text.rfind(separator, least, end)) != -1:
        around = next((span for span in whole if span.start < at + 1 < span.end), None)
        if around is None:
            return min(at + len(separator), most)
        end = max(around.start, least)
    return None


def _between_graphemes(text: str, start: int, most: int) -> int:
    """Return a cut that separates no accent from its letter and no part of a joined emoji."""
    end = most
    while end > start + 1 and (_extends(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return end if end > start + 1 else most


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


class _Writer:
    """Writes the tokens of a Markdown parser as text with styles."""

    def __init__(self, source: str) -> None:
        self._source = source.split("\n")
        self._text = ""
        self._spans: list[StyledSpan] = []
        self._open: list[tuple[Style, int, str]] = []
        self._lists: list[int | None] = []
        self._gap = ""

    def write(self, tokens: "list[Token]") -> StyledText:
        skipped_until = 0
        for token in tokens:
            if token.map is not None and token.map[0] < skipped_until and token.type != "table_open":
                continue
            if token.type == "table_open" and token.map is not None:
                skipped_until = token.map[1]
                self._block("\n".join(self._source[token.map[0] : token.map[1]]), "pre")
            elif not token.type.startswith(("table", "thead", "tbody", "tr_", "th_", "td_")):
                self._token(token)
        spans = (span for span in self._spans if span.start < span.end)
        return StyledText(self._text, tuple(sorted(spans, key=lambda span: (span.start, -span.end))))

    def _token(self, token: "Token") -> None:
        name, _, edge = token.type.rpartition("_")
        match token.type:
            case "inline":
                self._inline(token.children or [])
            case "fence" | "code_block":
                self._block(token.content.rstrip("\n"), "pre", token.info.split(" ")[0])
            case "hr":
                self._begin_block()
                self._text += RULE
                self._end_block()
            case "bullet_list_open" | "ordered_list_open":
                self._lists.append(int(token.attrs.get("start", 1)) if name == "ordered_list" else None)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._end_block()
            case "list_item_open":
                self._item()
            case "paragraph_open":
                self._begin_block()
            case "paragraph_close" | "list_item_close":
                self._end_block()
            case _ if name in BLOCK_STYLES and edge == "open":
                self._begin_block()
                self._open.append((BLOCK_STYLES[name], len(self._text), ""))
            case _ if name in BLOCK_STYLES:
                self._close()
                self._end_block()
            case _:
                pass

    def _begin_block(self) -> None:
        self._text += self._gap
        self._gap = ""

    def _end_block(self) -> None:
        self._gap = "\n" if self._lists else "\n\n"

    def _item(self) -> None:
        self._begin_block()
        number = self._lists[-1]
        if number is not None:
            self._lists[-1] = number + 1
        self._text += "  " * (len(self._lists) - 1) + ("• " if number is None else f"{number}. ")

    def _block(self, text: str, style: Style, target: str = "") -> None:
        self._begin_block()
        self._spans.append(StyledSpan(style, len(self._text), len(self._text) + len(text), target))
        self._text += text
        self._end_block()

    def _inline(self, tokens: "list[Token]") -> None:
        for token in tokens:
            name, _, edge = token.type.rpartition("_")
            if token.type in ("softbreak", "hardbreak"):
                self._text += "\n"
            elif token.type == "code_inline":
                start = len(self._text)
                self._text += token.content
                self._spans.append(StyledSpan("code", start, len(self._text)))
            elif token.type == "image":
                start = len(self._text)
                self._text += token.content or "picture"
                self._spans.append(
                    StyledSpan("link", start, len(self._text), str(token.attrs.get("src", "")))
                )
            elif name in INLINE_STYLES and edge == "open":
                self._open.append((INLINE_STYLES[name], len(self._text), str(token.attrs.get("href", ""))))
            elif name in INLINE_STYLES:
                self._close()
            else:
                self._text += token.content

    def _close(self) -> None:
        style, start, target = self._open.pop()
        self._spans.append(StyledSpan(style, start, len(self._text), target))
