"""Fits the parts of a turn's context into a budget of tokens. Pure: the same parts give the same bytes.

Parts that stay the same from turn to turn come first in a fixed order, so that a provider's prompt cache
applies. Parts that change with every turn are placed just before the user's message.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trunkline._util.untrusted_text import DATA_NOTE, OWNER_NOTE, wrap_context
from trunkline.contracts.turns.context import ContextPart
from trunkline.contracts.turns.journal_messages import RecordedPart

BYTES_PER_TOKEN = 4
"""The documented estimate of UTF-8 bytes per token. It is close for English and too low for most other
languages, so that token counts are overestimated."""

CHANGING_SHARE = 0.25
"""The share of the budget that is reserved for changing parts, so that they never displace the constant
parts."""

MIN_PART_TOKENS = 24
"""The smallest size of a shortened part. A part with fewer tokens is replaced by a note that states where to read the
part."""


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -(-len(text.encode(errors="surrogatepass")) // BYTES_PER_TOKEN)


BOOTSTRAP = "bootstrap"
"""The source of the first line."""

SEPARATOR = "\n\n"
"""The text between two parts."""


class FittedContext(NamedTuple):
    """The constant parts and the changing parts, each as one text, and what each text consists of."""

    constant: str
    changing: str
    parts: tuple[RecordedPart, ...]


def fit_parts(bootstrap: str, parts: Sequence[ContextPart], budget: int) -> FittedContext:
    """Return the constant parts (the bootstrap line first) and the changing parts, within ``budget`` tokens
    together."""
    parts = [part for part in parts if part.text.strip()]
    constant = [part for part in parts if not part.changing]
    room = budget - int(budget * CHANGING_SHARE)
    used, rendered = _render_parts(constant, room)
    _, changing = _render_parts([part for part in parts if part.changing], budget - used)
    rendered = [(BOOTSTRAP, bootstrap), *rendered]
    return FittedContext(
        SEPARATOR.join(text for _, text in rendered),
        SEPARATOR.join(text for _, text in changing),
        (*_recorded(rendered, changing=False), *_recorded(changing, changing=True)),
    )


def _recorded(rendered: Sequence[tuple[str, str]], *, changing: bool) -> Iterator[RecordedPart]:
    for source, text in rendered:
        yield RecordedPart(source=source, characters=len(text), changing=changing)


def _render_parts(parts: Sequence[ContextPart], room: int) -> tuple[int, list[tuple[str, str]]]:
    """Return the tokens used, and the sources and texts of the parts: by descending priority, else in the order
    given."""
    ranked = sorted(parts, key=lambda part: -part.priority)
    granted = _grant_tokens([(estimate_tokens(part.text), part.share) for part in ranked], room)
    rendered = [(part.source, _render(part, tokens)) for part, tokens in zip(ranked, granted, strict=True)]
    return sum(granted), rendered


def _grant_tokens(requests: Sequence[tuple[int, float]], room: int) -> list[int]:
    """Return the tokens granted to each part: first up to its share of the room, then of the rest in the
    order of rank."""
    granted, left = [], room
    for size, share in requests:
        granted.append(min(size, int(room * share), left))
        left -= granted[-1]
    for number, (size, _) in enumerate(requests):
        more = min(size - granted[number], left)
        granted[number] += more
        left -= more
    return granted


def _render(part: ContextPart, tokens: int) -> str:
    text = part.text.strip("\n")
    size = estimate_tokens(part.text)
    if tokens < size:
        text = _shorten(text, tokens, size, part.rest)
    if part.trusted:
        return text
    return wrap_context(part.source, text, note=OWNER_NOTE if part.by_owner else DATA_NOTE)


def _shorten(text: str, tokens: int, size: int, rest: str) -> str:
    head = truncate(text, tokens * BYTES_PER_TOKEN) if tokens >= MIN_PART_TOKENS else ""
    note = f"[Cut here: about {estimate_tokens(head)} of {size} tokens are shown. {rest}".rstrip() + "]"
    return f"{head}\n\n{note}" if head else note


def truncate(text: str, size: int) -> str:
    """Return the beginning of the text, at most ``size`` bytes.

    The beginning is cut at the end of a paragraph, else of a line, a sentence or a word, if at least half of it
    remains.
    """
    head = text.encode(errors="surrogatepass")[:size].decode(errors="ignore")
    if len(head) == len(text):
        return text
    for end in ("\n\n", "\n", ". ", " "):
        at = head.rfind(end)
        if at >= len(head) // 2:
            return head[: at + 1].rstrip() if end == ". " else head[:at].rstrip()
    return head
