"""Formats a trace as a tree of lines with times, tokens and errors. Pure; the caller prints the lines."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trunkline.contracts.workers.messages import SpanRecord
from trunkline.telemetry import semconv


@dataclass(frozen=True, slots=True)
class SpanLine:
    """A span in the tree.

    ``depth`` is 0 for a root. ``start`` is the number of seconds since the trace began, ``length`` the duration in
    seconds. ``branch`` is the text of the tree's lines before the span.
    """

    span: SpanRecord
    depth: int
    branch: str
    start: float
    length: float
    notes: str


def latest_spans(spans: Iterable[SpanRecord]) -> tuple[SpanRecord, ...]:
    """Return each span once: the ended record, or the open one when the span has not ended."""
    known: dict[str, SpanRecord] = {}
    for span in spans:
        if not span.unfinished or span.span_id not in known:
            known[span.span_id] = span
    return tuple(known.values())


def spans_of_turn(spans: Iterable[SpanRecord], turn: str) -> tuple[SpanRecord, ...]:
    """Return the spans of one turn: those that name it, and those below them up to a span that names another turn.

    A trace may contain several turns: one calls another agent, and a client may name any trace as the parent of its
    message.
    """
    known = {span.span_id: span for span in spans}

    def belongs(span: SpanRecord) -> bool:
        above: SpanRecord | None = span
        for _ in known:  # no more steps than spans: parents may form a circle
            if above is None or semconv.TURN in above.attributes:
                break
            above = known.get(above.parent_id or "")
        return above is not None and above.attributes.get(semconv.TURN) == turn

    return tuple(filter(belongs, known.values()))


def tree_lines(spans: Iterable[SpanRecord]) -> tuple[SpanLine, ...]:
    """Return the lines of the tree, the oldest span first. A span whose parent was never recorded is a root."""
    known = {span.span_id: span for span in latest_spans(spans)}
    children: defaultdict[str | None, list[SpanRecord]] = defaultdict(list)
    for span in sorted(known.values(), key=lambda s: (s.start, s.end)):
        children[span.parent_id if span.parent_id in known else None].append(span)
    begin = min((span.start for span in known.values()), default=0)
    return tuple(_walk(children, children[None], begin, 0, ""))


def _walk(
    children: dict[str | None, list[SpanRecord]], spans: list[SpanRecord], begin: int, depth: int, before: str
) -> Iterator[SpanLine]:
    for number, span in enumerate(spans):
        last = number == len(spans) - 1
        branch = before + ("└─ " if last else "├─ ") if depth else ""
        yield SpanLine(
            span, depth, branch, (span.start - begin) / 1e9, (span.end - span.start) / 1e9, span_notes(span)
        )
        below = before + ("   " if last else "│  ") if depth else ""
        yield from _walk(children, children.get(span.span_id, []), begin, depth + 1, below)


def span_notes(span: SpanRecord) -> str:
    """Return the notes to show beside the name of a span: step, route, tokens, first token, retries, fallbacks, omitted
    context and error."""
    found = span.attributes
    notes = []
    if semconv.STEP in found:
        notes.append(f"step {found[semconv.STEP]}")
    if semconv.ROUTE in found:
        notes.append(f"route {found[semconv.ROUTE]} ({found.get(semconv.ROUTE_REASON, '')})")
    if semconv.GEN_AI_INPUT_TOKENS in found:
        cached = found.get(semconv.GEN_AI_CACHE_READ_TOKENS)
        read = f" ({cached} cached)" if cached else ""
        notes.append(
            f"{found[semconv.GEN_AI_INPUT_TOKENS]} in{read} / {found.get(semconv.GEN_AI_OUTPUT_TOKENS, 0)} out"
        )
    first = next((event["time"] for event in span.events if event["name"] == semconv.FIRST_TOKEN), None)
    if first is not None:
        notes.append(f"first token {(first - span.start) / 1e6:.0f} ms")
    notes += [note for event in span.events if (note := _event_note(event))]
    if found.get(semconv.EPOCH, 1) != 1:
        notes.append(f"owner {found[semconv.EPOCH]}")
    if found.get(semconv.REPEATED):
        notes.append("from the ledger")
    if span.unfinished or found.get(semconv.UNFINISHED):
        notes.append("not ended: its worker ended early, or the span still runs")
    notes += [f"linked to trace {link}" for link in span.links]
    if span.status == "error":
        notes.append(f"error: {span.message or found.get(semconv.ERROR_TYPE, '')}".rstrip(": "))
    return ", ".join(notes)


def _event_note(event: Mapping[str, Any]) -> str:
    """Return the note about an event, "" for an event without one."""
    match event["name"]:
        case semconv.MODEL_RETRY:
            return f"repeated ({event.get(semconv.MODEL_FAULT)})"
        case semconv.MODEL_FALLBACK:
            return f"fallback to {event.get(semconv.MODEL_LABEL)}"
        case semconv.CONTEXT_LEFT_OUT:
            return f"without {event.get(semconv.CONTEXT_SOURCE)}: {event.get(semconv.REASON)}"
        case _:
            return ""


def span_title(span: SpanRecord) -> str:
    """Return the name of the span with the subject in place of the subject's template.

    Recorded names contain the template, so that there are few different names.
    """
    found = span.attributes
    template, subject = found.get(semconv.MESSAGING_TEMPLATE), found.get(semconv.MESSAGING_DESTINATION)
    return span.name.replace(str(template), str(subject)) if template and subject else span.name


def span_worker(span: SpanRecord) -> str:
    """Return the worker that made the span, by the name of its connection; else the part of the program."""
    client = str(span.attributes.get(semconv.MESSAGING_CLIENT, ""))
    return client.rpartition("_")[0] or span.service.removeprefix("trunkline.")
