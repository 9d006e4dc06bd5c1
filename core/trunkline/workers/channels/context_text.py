"""The text that shows a person what a model was sent in a turn. The same in every channel and on the command line."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from trunkline._util.text import one_line, printable
from trunkline.contracts.turns.context_view import ContextView, SentPart

GROUPS = {
    "tool": "tools",
    "bootstrap": "bootstrap line",
    "context": "context",
    "instructions": "instructions of the client",
    "summary": "summary of earlier messages",
    "history": "history",
    "recall": "context that changes",
    "message": "message",
    "turn": "answers and results of this turn",
}
"""What each kind of part is called."""

WIDTH = 9
"""Columns of a number of tokens."""


def describe_context(view: ContextView, *, history: bool = True) -> str:
    """Return the parts of a context with their tokens, shares of the window and cached tokens. Without ``history`` the
    messages of the history are counted and not listed."""
    lines = [*_heading(view), "", f"{'TOKENS':>{WIDTH}} {'SHARE':>7} {'CACHED':>{WIDTH}}  PART"]
    for kind, parts in groupby(view.parts, key=lambda part: part.kind):
        lines += _group(GROUPS[kind], tuple(parts), view.window, listed=history or kind != "history")
    return "\n".join(lines)


def _heading(view: ContextView) -> Iterable[str]:
    yield f"turn {view.turn}  model call {view.step}  {printable(view.model)}"
    share = f"{view.tokens} of {view.window} tokens ({view.tokens / view.window:.1%} of the window)"
    if not view.input_tokens:
        yield f"{share}, all of them estimated: the vendor counted none."
        return
    yield f"{share}, {view.cached_tokens} of them from the vendor's cache: counted by the vendor."
    yield "The tokens of the parts are estimated; they add up to the vendor's count."


def _group(title: str, parts: Sequence[SentPart], window: int, *, listed: bool) -> Iterable[str]:
    """Return the line of a group, and a line for each of its parts. A group of one part has one line."""
    name = f"{title} ({len(parts)})" if len(parts) > 1 else title
    if len(parts) == 1 and parts[0].kind not in ("bootstrap", "message"):
        name = f"{title}: {one_line(printable(parts[0].name))}"
    tokens, cached = sum(part.tokens for part in parts), sum(part.cached for part in parts)
    yield _line(tokens, cached, window, name)
    if len(parts) > 1 and listed:
        for part in parts:
            yield _line(part.tokens, part.cached, window, f"  {one_line(printable(part.name))}")


def _line(tokens: int, cached: int, window: int, name: str) -> str:
    return f"{tokens:>{WIDTH}} {tokens / window:>7.1%} {cached or '':>{WIDTH}}  {name}"


def describe_texts(view: ContextView) -> str:
    """Return the text of each part below its name."""
    parts = (
        f"--- {GROUPS[part.kind]}: {one_line(printable(part.name))} ({part.tokens} tokens)\n{printable(part.text)}"
        for part in view.parts
        if part.text
    )
    return "\n\n".join(parts)
