"""Puts the parts of a turn's context together within a budget of tokens. Pure: the same parts give the same bytes.

What stays from turn to turn is told first, in an order that does not change, so that a provider's cache of the
prompt's beginning holds. What changes with every turn is told apart, just before the person's message.
"""

from collections.abc import Sequence

from trunkline._util.untrusted_text import DATA, OWNER, fenced
from trunkline.contracts.turns.context import ContextPart

BYTES_A_TOKEN = 4
"""The documented estimate: UTF-8 bytes to a token. It is near for English and errs to the safe side for most others."""

CHANGING = 0.25
"""The part of the budget that is kept for what changes with each turn, so that this never moves what stays."""

LEAST = 24
"""Tokens below which nothing of a part is told but where it can be read."""


def tokens_of(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text.encode(errors="surrogatepass")) // BYTES_A_TOKEN)


def assembled(bootstrap: str, parts: Sequence[ContextPart], budget: int) -> tuple[str, str]:
    """What stays (the bootstrap line first) and what changes, each as one text, within ``budget`` tokens together."""
    parts = [part for part in parts if part.text.strip()]
    staying = [part for part in parts if not part.changing]
    room = budget - int(budget * CHANGING)
    used, told = _told(staying, room)
    _, changing = _told([part for part in parts if part.changing], budget - used)
    return "\n\n".join((bootstrap, *told)), "\n\n".join(changing)


def _told(parts: Sequence[ContextPart], room: int) -> tuple[int, list[str]]:
    """The tokens used, and the parts as they are told: higher priority first, else in the order given."""
    ranked = sorted(parts, key=lambda part: -part.priority)
    granted = _granted([(tokens_of(part.text), part.share) for part in ranked], room)
    return sum(granted), [_rendered(part, tokens) for part, tokens in zip(ranked, granted, strict=True)]


def _granted(wishes: Sequence[tuple[int, float]], room: int) -> list[int]:
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


def _rendered(part: ContextPart, tokens: int) -> str:
    text = part.text.strip("\n")
    size = tokens_of(part.text)
    if tokens < size:
        text = _shortened(text, tokens, size, part.rest)
    if part.trusted:
        return text
    return fenced(part.source, text, note=OWNER if part.by_owner else DATA)


def _shortened(text: str, tokens: int, size: int, rest: str) -> str:
    head = cut(text, tokens * BYTES_A_TOKEN) if tokens >= LEAST else ""
    note = f"[Cut here: about {tokens_of(head)} of {size} tokens are shown. {rest}".rstrip() + "]"
    return f"{head}\n\n{note}" if head else note


def cut(text: str, size: int) -> str:
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
