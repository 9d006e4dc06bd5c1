"""Puts the parts of a turn's context together within a budget of tokens. Pure: the same parts give the same bytes.

What stays from turn to turn is told first, in an order that does not change, so that a provider's cache of the
prompt's beginning holds. What changes with every turn is told apart, just before the person's message.
"""

from collections.abc import Sequence

from trunkline._util.untrusted_text import DATA_NOTE, OWNER_NOTE, wrap_context
from trunkline.contracts.turns.context import ContextPart

BYTES_PER_TOKEN = 4
"""The documented estimate: UTF-8 bytes to a token. It is near for English and errs to the safe side for most others."""

CHANGING_SHARE = 0.25
"""The part of the budget that is kept for what changes with each turn, so that this never moves what stays."""

MIN_PART_TOKENS = 24
"""Tokens below which nothing of a part is told but where it can be read."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text.encode(errors="surrogatepass")) // BYTES_PER_TOKEN)


def fit_parts(bootstrap: str, parts: Sequence[ContextPart], budget: int) -> tuple[str, str]:
    """What stays (the bootstrap line first) and what changes, each as one text, within ``budget`` tokens together."""
    parts = [part for part in parts if part.text.strip()]
    staying = [part for part in parts if not part.changing]
    room = budget - int(budget * CHANGING_SHARE)
    used, told = _render_parts(staying, room)
    _, changing = _render_parts([part for part in parts if part.changing], budget - used)
    return "\n\n".join((bootstrap, *told)), "\n\n".join(changing)


def _render_parts(parts: Sequence[ContextPart], room: int) -> tuple[int, list[str]]:
    """The tokens used, and the parts as they are told: higher priority first, else in the order given."""
    ranked = sorted(parts, key=lambda part: -part.priority)
    granted = _grant_tokens([(estimate_tokens(part.text), part.share) for part in ranked], room)
    return sum(granted), [_render(part, tokens) for part, tokens in zip(ranked, granted, strict=True)]


def _grant_tokens(wishes: Sequence[tuple[int, float]], room: int) -> list[int]:
    """Tokens for each: first up to its share of the room, then what is left, in the order of rank."""
    granted, left = [], room
    for wish, share in wishes:
        granted.append(min(wish, int(room * share), left))
        left -= granted[-1]
    for number, (wish, _) in enumerate(wishes):
        more = min(wish - granted[number], left)
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
    """The text's beginning of at most ``size`` bytes, up to the end of a paragraph, else of a line, a sentence or a
    word, as long as half of it remains."""
    head = text.encode(errors="surrogatepass")[:size].decode(errors="ignore")
    if len(head) == len(text):
        return text
    for end in ("\n\n", "\n", ". ", " "):
        at = head.rfind(end)
        if at >= len(head) // 2:
            return head[: at + 1].rstrip() if end == ". " else head[:at].rstrip()
    return head
