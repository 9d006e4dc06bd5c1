"""The content of a post: plain text, Matrix's subset of HTML, and what reactions to it mean. Pure."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from trunkline.api.channel import Attachment, Button, StyledSpan, StyledText, cut_text, parse_markdown

MAX_BYTES = 8_000
"""Bytes of a post's text. An edit has it twice, plain and as HTML, and an event has at most 65 536 bytes."""

MAX_EVENT_BYTES = 60_000
"""Bytes of the content of an event. What styles make longer is shown without them."""

DELIVERY, REACTIONS = "org.trunkline.delivery", "org.trunkline.reactions"
"""The fields of our events: by the first a post is found again; the second has the words that a reaction stands for."""

LINKED = ("http://", "https://", "mailto:", "matrix:")
"""How an address begins that is a link. Others are shown as text."""

TAGS = {"bold": "strong", "italic": "em", "strike": "del", "quote": "blockquote", "code": "code"}

BLOCKS = ("pre", "quote")
"""The styles that are a block of their own."""

ALLOW, DENY = "👍", "👎"

_INVISIBLE = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")


class MatrixContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one post: its plain text and its HTML, "" if it has no styles; or a file. ``reactions`` are the
    words that each reaction stands for.
    """

    text: str = ""
    html: str = ""
    file: Attachment | None = None
    reactions: dict[str, str] = {}

    def encode(self) -> str:
        """Return the content as text, as the ledger keeps it."""
        return msgspec.json.encode(self).decode()

    def event(self) -> dict[str, Any]:
        """Return the content of the event that shows this text. It mentions nobody, whatever the text says."""
        event: dict[str, Any] = {"msgtype": "m.text", "body": self.text, "m.mentions": {}}
        if self.html:
            event |= {"format": "org.matrix.custom.html", "formatted_body": self.html}
        if self.reactions:
            event[REACTIONS] = self.reactions
        return event

    def edit(self, id: str) -> dict[str, Any]:
        """Return the content of the event that changes the post ``id`` to this content."""
        new = self.event()
        return {
            **{name: value for name, value in new.items() if name != REACTIONS},
            "body": f"* {self.text}",
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": id},
        }


def decode_content(text: str) -> MatrixContent:
    """Return the content that ``encode`` wrote."""
    return msgspec.json.decode(text, type=MatrixContent)


def file_event(file: Attachment, uri: str) -> dict[str, Any]:
    """Return the content of the event that shows an uploaded file."""
    kind = file.media_type.partition("/")[0]
    return {
        "msgtype": f"m.{kind}" if kind in ("image", "audio", "video") else "m.file",
        "body": file.name,
        "filename": file.name,
        "url": uri,
        "info": {"mimetype": file.media_type, "size": file.size},
        "m.mentions": {},
    }


def markdown_contents(text: str) -> tuple[MatrixContent, ...]:
    """Return the posts that show a Markdown text."""
    return tuple(_content(piece) for piece in cut_text(parse_markdown(text), MAX_BYTES, _bytes))


def plain_contents(text: str, buttons: Sequence[Button] = ()) -> tuple[MatrixContent, ...]:
    """Return the posts that show a text as it is. Matrix has no buttons: the last post says what reactions mean."""
    reactions = reactions_of(buttons)
    legend = "\n\nOr react: " + ", ".join(f"{key} {label}" for key, (label, _) in reactions.items())
    pieces = cut_text(StyledText(text + legend if reactions else text), MAX_BYTES, _bytes)
    words = {key: words for key, (_, words) in reactions.items()}
    contents = [MatrixContent(text=piece.text) for piece in pieces]
    return (*contents[:-1], msgspec.structs.replace(contents[-1], reactions=words))


def reactions_of(buttons: Sequence[Button]) -> Mapping[str, tuple[str, str]]:
    """Return the label and the words for which each reaction stands. What allows more than one call needs words."""
    found: dict[str, tuple[str, str]] = {}
    for button in buttons:
        verb, _, rest = button.words.partition(" ")
        _, _, more = rest.partition(" ")
        if verb == "deny":
            found[DENY] = (button.label, button.words)
        elif verb == "answer" and more.isdigit() and 1 <= int(more) <= 9:
            found[f"{more}\u20e3"] = (button.label, button.words)
        elif verb == "approve" and not more:
            found[ALLOW] = (button.label, button.words)
    return found


def plain_reaction(key: str) -> str:
    """Return a reaction without what only changes its look, such as a colour of skin."""
    return _INVISIBLE.sub("", key)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _content(styled: StyledText) -> MatrixContent:
    text = styled.text
    html = _inside(text, styled.spans, 0, len(text)) if styled.spans else ""
    whole = MatrixContent(text=text, html=html)
    fits = len(msgspec.json.encode(whole.edit("$" + 43 * "x"))) <= MAX_EVENT_BYTES
    return whole if fits else MatrixContent(text=text)


def _inside(text: str, spans: Sequence[StyledSpan], start: int, end: int) -> str:
    """Return the HTML of ``text[start:end]``. ``spans`` are those inside it, in the order of their starts."""
    drawn, at, rest = "", start, list(spans)
    while rest:
        span, *rest = rest
        inner = [one for one in rest if one.start < span.end]
        rest = rest[len(inner) :]
        before = text[at : span.start]
        at = span.end
        if span.style in BLOCKS:  # the line breaks beside a block are the block's own
            before = before.rstrip("\n")
            at += len(text[at:end]) - len(text[at:end].lstrip("\n"))
        drawn += _plain(before) + _drawn(text, span, inner)
    return drawn + _plain(text[at:end])


def _drawn(text: str, span: StyledSpan, inner: Sequence[StyledSpan]) -> str:
    raw = text[span.start : span.end]
    if span.style == "pre":
        name = span.target if re.fullmatch(r"[A-Za-z0-9+#_.-]{1,20}", span.target) else ""
        language = f' class="language-{name}"' if name else ""
        return f"<pre><code{language}>{escape(raw)}\n</code></pre>"
    if span.style == "code":
        return f"<code>{escape(raw)}</code>"
    shown = _inside(text, inner, span.start, span.end)
    if span.style == "link":
        linked = span.target.startswith(LINKED)
        return f'<a href="{escape(span.target)}">{shown}</a>' if linked else shown
    tag = TAGS[span.style]
    return f"<{tag}>{shown}</{tag}>"


def _plain(text: str) -> str:
    return escape(text).replace("\n", "<br>")
