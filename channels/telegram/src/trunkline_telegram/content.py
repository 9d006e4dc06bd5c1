"""The content of a post: text with entities and buttons, as Telegram wants them. Pure."""

from collections.abc import Sequence

import msgspec

from trunkline.api.channel import Button, StyledSpan, StyledText, cut_text, parse_markdown, utf16_units

MAX_UNITS = 4096
"""UTF-16 units of a message's text."""

ENTITY_TYPES = {
    "bold": "bold", "italic": "italic", "strike": "strikethrough", "code": "code", "pre": "pre", "link": "text_link",
    "quote": "blockquote",
}  # fmt: skip
"""Telegram's names of the styles."""

LINKED = ("http://", "https://", "tg://", "mailto:")
"""How an address begins that Telegram accepts as a link. Others are shown as text."""


class PostEntity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A style of a part of the text. ``offset`` and ``length`` are UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


class PostContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one message. ``buttons`` are pairs of label and data."""

    text: str
    entities: tuple[PostEntity, ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()

    def encode(self) -> str:
        """Return the content as text, as the ledger keeps it."""
        return msgspec.json.encode(self).decode()


def decode_content(text: str) -> PostContent:
    """Return the content that ``encode`` wrote."""
    return msgspec.json.decode(text, type=PostContent)


def markdown_contents(text: str) -> tuple[PostContent, ...]:
    """Return the posts that show a Markdown text."""
    return tuple(_content(piece) for piece in cut_text(parse_markdown(text), MAX_UNITS))


def plain_contents(text: str, buttons: Sequence[Button] = ()) -> tuple[PostContent, ...]:
    """Return the posts that show a text as it is; the last one has the buttons."""
    pieces = [_content(piece) for piece in cut_text(StyledText(text), MAX_UNITS)]
    pairs = tuple((button.label, button.words) for button in buttons)
    return (*pieces[:-1], msgspec.structs.replace(pieces[-1], buttons=pairs))


def _content(styled: StyledText) -> PostContent:
    entities = (entity for span in styled.spans if (entity := _entity(styled.text, span)) is not None)
    return PostContent(text=styled.text, entities=tuple(entities))


def _entity(text: str, span: StyledSpan) -> PostEntity | None:
    styled = text[span.start : span.end]
    length = utf16_units(styled)
    if not styled.strip() or (span.style == "link" and not span.target.startswith(LINKED)):
        return None
    return PostEntity(
        type=ENTITY_TYPES[span.style],
        offset=utf16_units(text[: span.start]),
        length=length,
        url=span.target if span.style == "link" else None,
        language=span.target or None if span.style == "pre" else None,
    )
