"""The content of a post: Slack's rich text and buttons. Pure.

Slack's own Markdown has no way to escape a mark. So a text is sent as rich text, which shows exactly what it has, and
besides as a plain text, which Slack shows in notices.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import msgspec

from trunkline.api.channel import Attachment, Button, StyledSpan, StyledText, cut_text, parse_markdown

MAX_CHARACTERS = 4000
"""Characters of a message's text, in which ``&``, ``<`` and ``>`` count as Slack writes them."""

UPLOAD_LIMIT = 100 * 1024 * 1024
"""Bytes of the largest file that is sent."""

LINKED = ("http://", "https://", "mailto:")
"""How an address begins that is a link. Others are shown as text."""

IN_BLOCK = 25
"""Buttons in a block."""

MAX_LABEL = 75
"""Characters of a button's label."""

BLOCKS = ("pre", "quote")
"""The styles that are a part of their own in a rich text."""

_ADDRESS = re.compile(r"(https?://[^\s<>]*[^\s<>.,;:!?)\]}'\"*_~`])")


class SlackContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one message: its plain text, its rich text as Slack's elements, and pairs of label and words; or
    a file.
    """

    text: str = ""
    file: Attachment | None = None
    elements: tuple[dict[str, Any], ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()

    def encode(self) -> str:
        """Return the content as text, as the ledger keeps it."""
        return msgspec.json.encode(self).decode()

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks that show this content."""
        shown: list[dict[str, Any]] = []
        if self.elements:
            shown.append({"type": "rich_text", "elements": list(self.elements)})
        for start in range(0, len(self.buttons), IN_BLOCK):
            pairs = self.buttons[start : start + IN_BLOCK]
            buttons = [_button(start + number, *pair) for number, pair in enumerate(pairs)]
            shown.append({"type": "actions", "elements": buttons})
        return shown


def decode_content(text: str) -> SlackContent:
    """Return the content that ``encode`` wrote."""
    return msgspec.json.decode(text, type=SlackContent)


def markdown_contents(text: str) -> tuple[SlackContent, ...]:
    """Return the posts that show a Markdown text."""
    return tuple(_content(piece) for piece in _pieces(parse_markdown(text)))


def plain_contents(text: str, buttons: Sequence[Button] = ()) -> tuple[SlackContent, ...]:
    """Return the posts that show a text as it is; the last one has the buttons."""
    pieces = [_content(piece) for piece in _pieces(StyledText(text))]
    pairs = tuple((button.label, button.words) for button in buttons)
    return (*pieces[:-1], msgspec.structs.replace(pieces[-1], buttons=pairs))


def escape(text: str) -> str:
    """Return a text in which Slack sees no mention and no link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """Return a text of Slack as people see it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def file_content(file: Attachment) -> SlackContent | None:
    """Return the post that shows a file; None if it is empty or too large for Slack."""
    return SlackContent(file=file) if 0 < file.size <= UPLOAD_LIMIT else None


def marked_name(name: str, nonce: str) -> str:
    """Return the name under which a file is stored, which has a part of the nonce. People see the title instead."""
    path = PurePosixPath(name.replace("/", "-"))
    return f"{path.stem}-{nonce[:12]}{path.suffix}"


def _pieces(styled: StyledText) -> Sequence[StyledText]:
    return cut_text(styled, MAX_CHARACTERS, lambda text: len(escape(text)))


def _content(styled: StyledText) -> SlackContent:
    return SlackContent(text=escape(styled.text), elements=tuple(rich_text(styled)))


def rich_text(styled: StyledText) -> Iterator[dict[str, Any]]:
    """Yield the elements of a rich text, as Slack's ``rich_text`` block has them."""
    at = 0
    for span in (one for one in styled.spans if one.style in BLOCKS):
        if span.start < at:
            continue  # inside of the last one: a quote in a quote is a part of it
        yield from _section(styled, at, span.start)
        yield _block(styled, span)
        at = span.end
    yield from _section(styled, at, len(styled.text))


def _section(styled: StyledText, start: int, end: int) -> Iterator[dict[str, Any]]:
    """Yield a section with ``text[start:end]``. The line break beside a block is the block's own."""
    if end < len(styled.text) and styled.text[start:end].endswith("\n"):
        end -= 1
    if start > 0 and styled.text[start:end].startswith("\n"):
        start += 1
    elements = list(_runs(styled, start, end))
    if elements:
        yield {"type": "rich_text_section", "elements": elements}


def _block(styled: StyledText, span: StyledSpan) -> dict[str, Any]:
    if span.style == "pre":
        text = styled.text[span.start : span.end] or " "
        return {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    elements = list(_runs(styled, span.start, span.end)) or [{"type": "text", "text": " "}]
    return {"type": "rich_text_quote", "elements": elements}


def _runs(styled: StyledText, start: int, end: int) -> Iterator[dict[str, Any]]:
    """Yield ``text[start:end]`` in runs, each of which has the same styles from its beginning to its end."""
    spans = [one for one in styled.spans if one.start < end and one.end > start and one.style != "quote"]
    borders = {start, end, *(one.start for one in spans), *(one.end for one in spans)}
    places = sorted(border for border in borders if start <= border <= end)
    for begin, stop in pairwise(places):
        around = [one for one in spans if one.start <= begin and one.end >= stop]
        names = {"pre": "code", "code": "code", "bold": "bold", "italic": "italic", "strike": "strike"}
        style = {names[one.style]: True for one in around if one.style in names}
        target = next((one.target for one in around if one.style == "link"), "")
        text = styled.text[begin:stop]
        if target.startswith(LINKED):
            yield _run({"type": "link", "url": target, "text": text}, style)
        elif "code" in style:
            yield _run({"type": "text", "text": text}, style)
        else:
            yield from _with_addresses(text, style)


def _with_addresses(text: str, style: Mapping[str, bool]) -> Iterator[dict[str, Any]]:
    """Yield a text in which addresses can be opened: rich text makes no link by itself."""
    for number, part in enumerate(_ADDRESS.split(text)):
        if part:
            yield _run({"type": "link", "url": part} if number % 2 else {"type": "text", "text": part}, style)


def _run(element: dict[str, Any], style: Mapping[str, bool]) -> dict[str, Any]:
    return {**element, "style": dict(style)} if style else element


def _button(number: int, label: str, words: str) -> dict[str, Any]:
    text = {"type": "plain_text", "text": label[:MAX_LABEL], "emoji": False}
    return {"type": "button", "action_id": f"button-{number}", "text": text, "value": words}
