"""The content of a post: text with entities and buttons, as Telegram wants them. Pure."""

import re
from collections.abc import Sequence

import msgspec

from trunkline.api.channel import (
    Attachment,
    Button,
    StyledSpan,
    StyledText,
    cut_text,
    parse_markdown,
    utf16_units,
)

MAX_UNITS = 4096
"""UTF-16 units of a message's text."""

MAX_PLACES = 5
"""How many places of an answer are shown on a map."""

_GEO = re.compile(r"geo:(-?\d{1,3}(?:\.\d{1,12})?),(-?\d{1,3}(?:\.\d{1,12})?)(?=[,;?]|$)")

PHOTO_LIMIT, DOCUMENT_LIMIT = 10 * 1024 * 1024, 50 * 1024 * 1024
"""Bytes of the largest photo and of the largest document that a bot can send."""

PHOTO_TYPES = ("image/jpeg", "image/png", "image/webp")
"""The types of pictures that Telegram shows as photos. A GIF would stand still."""

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
    """The content of one message. ``buttons`` are pairs of label and data. A message that shows ``file``, or ``place``
    as latitude and longitude, has no text.
    """

    text: str = ""
    file: Attachment | None = None
    place: tuple[float, float] | None = None
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


def file_content(file: Attachment) -> PostContent | None:
    """Return the post that shows a file; None if it is too large for Telegram."""
    return PostContent(file=file) if file.size <= DOCUMENT_LIMIT else None


def place_contents(markdown: str) -> tuple[PostContent, ...]:
    """Return the posts that show the places to which a text links by ``geo:`` addresses (RFC 5870)."""
    links = (span.target for span in parse_markdown(markdown).spans if span.style == "link")
    places = (place for link in links if (place := _place(link)) is not None)
    return tuple(PostContent(place=place) for place in list(dict.fromkeys(places))[:MAX_PLACES])


def _place(link: str) -> tuple[float, float] | None:
    found = _GEO.match(link)
    if found is None:
        return None
    latitude, longitude = float(found[1]), float(found[2])
    return (latitude, longitude) if abs(latitude) <= 90 and abs(longitude) <= 180 else None


def is_photo(file: Attachment) -> bool:
    """Report whether Telegram can show a file as a photo. Any other picture is a document."""
    return file.media_type in PHOTO_TYPES and file.size <= PHOTO_LIMIT


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
