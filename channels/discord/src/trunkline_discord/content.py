"""The content of a post: Discord's Markdown and buttons. Pure."""

import re
from collections.abc import Iterator, Sequence

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

MAX_UNITS = 2000
"""UTF-16 units of a message's text."""

UPLOAD_LIMIT = 10 * 1024 * 1024
"""Bytes of the largest file that a bot can send."""

MARKS = {"bold": "**", "italic": "*", "strike": "~~"}
"""Discord's marks around a text of a style."""

FENCE, FENCE_SHOWN = "```", "`\u200b``"
"""The mark of a code block, and what stands for it inside of one: with a space of no width."""

LINKED = ("http://", "https://")
"""How an address begins that Discord accepts as a link. Others are shown as text."""

_SPECIAL = re.compile(r"(?P<before>^ *)(?=[#>+-])|(?P<mark>[\\*_~`|<\[])", re.MULTILINE)
_ADDRESS = re.compile(r"(https?://[^\s<>]+)")


class DiscordContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one message. ``buttons`` are pairs of label and words. A message with ``file`` has no text."""

    text: str = ""
    file: Attachment | None = None
    buttons: tuple[tuple[str, str], ...] = ()

    def encode(self) -> str:
        """Return the content as text, as the ledger keeps it."""
        return msgspec.json.encode(self).decode()


def decode_content(text: str) -> DiscordContent:
    """Return the content that ``encode`` wrote."""
    return msgspec.json.decode(text, type=DiscordContent)


def markdown_contents(text: str) -> tuple[DiscordContent, ...]:
    """Return the posts that show a Markdown text."""
    return tuple(DiscordContent(text=piece) for piece in _pieces(parse_markdown(text), MAX_UNITS))


def plain_contents(text: str, buttons: Sequence[Button] = ()) -> tuple[DiscordContent, ...]:
    """Return the posts that show a text as it is; the last one has the buttons."""
    pieces = [DiscordContent(text=piece) for piece in _pieces(StyledText(text), MAX_UNITS)]
    pairs = tuple((button.label, button.words) for button in buttons)
    return (*pieces[:-1], msgspec.structs.replace(pieces[-1], buttons=pairs))


def file_content(file: Attachment) -> DiscordContent | None:
    """Return the post that shows a file; None if it is too large for Discord."""
    return DiscordContent(file=file) if file.size <= UPLOAD_LIMIT else None


def _pieces(styled: StyledText, limit: int) -> Iterator[str]:
    """Yield the text as Discord's Markdown. Marks need room too, so a piece that they make too long is cut again."""
    for piece in cut_text(styled, limit):
        drawn = draw(piece)
        units = utf16_units(drawn)
        if units <= MAX_UNITS:
            yield drawn
        else:
            yield from _pieces(piece, max(1, min(limit - 1, utf16_units(piece.text) * MAX_UNITS // units)))


def draw(styled: StyledText) -> str:
    """Return Discord's Markdown for a text with styles. What only looks like Markdown is escaped."""
    return _inside(styled.text, styled.spans, 0, len(styled.text))


def _inside(text: str, spans: Sequence[StyledSpan], start: int, end: int) -> str:
    """Return the Markdown of ``text[start:end]``. ``spans`` are those inside it, in the order of their starts."""
    drawn, at, rest = "", start, list(spans)
    while rest:
        span, *rest = rest
        inner = [one for one in rest if one.start < span.end]
        rest = rest[len(inner) :]
        drawn += escape(text[at : span.start]) + _drawn(text, span, inner)
        at = span.end
    return drawn + escape(text[at:end])


def _drawn(text: str, span: StyledSpan, inner: Sequence[StyledSpan]) -> str:
    raw = text[span.start : span.end]
    if not raw.strip():
        return raw
    match span.style:
        case "pre":
            whole = raw.replace(FENCE, FENCE_SHOWN)
            return f"{FENCE}{_language(span.target)}\n{whole}\n{FENCE}"
        case "code":
            return f"`` {raw} ``" if "`" in raw else f"`{raw}`"
        case "quote":
            lines = _inside(text, inner, span.start, span.end).split("\n")
            return "\n".join(f"> {line}" for line in lines)
        case "link":
            if not span.target.startswith(LINKED) or re.search(r"[\s<>()]", span.target):
                return _inside(text, inner, span.start, span.end)
            return f"[{escape(raw, addresses=False)}](<{span.target}>)"
        case _:
            mark = MARKS[span.style]
            shown = _inside(text, inner, span.start, span.end)
            words = shown.strip()
            before, after = shown[: len(shown) - len(shown.lstrip())], shown[len(shown.rstrip()) :]
            return f"{before}{mark}{words}{mark}{after}"


def _language(target: str) -> str:
    return target if re.fullmatch(r"[A-Za-z0-9+#_.-]{1,20}", target) else ""


def escape(text: str, *, addresses: bool = True) -> str:
    """Return a text in which nothing is Markdown or a mention. An address stays as it is, so that it can be opened."""
    parts = _ADDRESS.split(text) if addresses else [text]
    return "".join(part if number % 2 else _SPECIAL.sub(_escaped, part) for number, part in enumerate(parts))


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found['mark']}" if found["mark"] else f"{found['before']}\\"
