"""The page of what is said where: ``trunkline.contracts.subjects`` as tables."""

from typing import Any, TypeVar

from generator.markdown import code, prose, seconds, shown, table
from trunkline.contracts import subjects
from trunkline.contracts.streams import INBOX_STREAM
from trunkline_bus import Counter, Endpoint, Topic

T = TypeVar("T")

INTRODUCTION = """
# Subjects, streams and buckets

Workers communicate only over a NATS server, on the subjects below. A subject has the form
`trunkline.<plane>.<area>.<key>.<verb or fact>`. A word in braces is a key, such as a conversation's id.

| plane | messages |
|---|---|
| `cmd` | requests with a reply; one worker of the kind takes each |
| `turn` | the durable inbox |
| `journal` | the steps of turns and tool calls, kept for weeks |
| `feed` | the events that a turn shows, kept for an hour |
| `evt` | facts, for any subscriber |
| `count` | numbers that processes change atomically |
| `ctl` | control messages, received by every worker, never queued |
| `x` | subjects of plugins: `trunkline.x.<plugin>.…` |
| `dead` | messages that could not be decoded or handled, with the reason |

Each message is an envelope in JSON: `id`, `time`, `source`, `data`, and if known `block`, `conversation`, `turn`,
`cause` and `traceparent`. [Messages](messages.md) lists the payloads in `data`. Any NATS client can watch the messages,
for instance `nats sub 'trunkline.>'`.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION.strip(), _requests(), _topics(), _streams(), _consumers(), _buckets()]
    return "\n\n".join(parts)


def _all_of(kind: type[T]) -> list[T]:
    return [value for value in vars(subjects).values() if isinstance(value, kind)]


def _payload(kind: Any) -> str:
    return shown(kind).replace(" or ", ", ")


def _requests() -> str:
    rows = [
        (
            code(one.name),
            code(one.subject.template),
            _payload(one.request),
            _payload(one.reply) + (", several" if one.streaming else ""),
            one.doc,
        )
        for one in _all_of(Endpoint)
    ]
    note = (
        "`{channel}` is the name of the calling channel, so that credentials can be limited to its subjects."
    )
    header = ("endpoint", "subject", "request", "reply", "purpose")
    return f"## Requests\n\n{note}\n\n{table(header, rows)}"


def _topics() -> str:
    rows = [
        (
            one.name,
            code(one.subject.template),
            _payload(one.payload),
            code(one.stream) if one.stream else "not stored",
            one.doc,
        )
        for one in _all_of(Topic)
    ]
    rows += [
        (one.name, code(one.subject.template), "a number", code(one.stream), one.doc)
        for one in _all_of(Counter)
    ]
    return "## Topics\n\n" + table(("topic", "subject", "payload", "stream", "purpose"), rows)


def _streams() -> str:
    rows = [
        (
            code(one.name),
            ", ".join(map(code, one.subjects)),
            "until done" if one.retention == "workqueue" else seconds(one.max_age),
            f"{(one.max_bytes or 0) // 1024 // 1024} MiB; "
            + ("new messages are refused" if one.discard == "new" else "the oldest are removed"),
            "no: a crash may lose the last messages" if one.persist_async else "yes",
            one.description,
        )
        for one in subjects.topology().streams
    ]
    header = ("stream", "subjects", "kept", "at most", "on disk before the ack", "content")
    note = (
        "With a cluster (`bus.replicas` above 1) every stream is acknowledged by a majority, and none is stored "
        "asynchronously. `[retention]` changes how long messages are kept, and how many bytes of them."
    )
    return f"## Streams\n\n{table(header, rows)}\n\n{note}"


def _consumers() -> str:
    consumers = subjects.topology().consumers
    partitions = [one for one in consumers if one.stream == INBOX_STREAM]
    others = [f"`{one.name}` of `{one.stream}`" for one in consumers if one.stream != INBOX_STREAM]
    one = partitions[0]
    return (
        f"## Consumers\n\nThe inbox has {len(partitions)} partitions, by conversation "
        f"(`trunkline partitions` changes that), `{one.filter.replace('.0.', '.N.')}`. "
        f"Each has a durable pull consumer `{one.name.replace('0', 'N')}` in the "
        f"priority group `{one.pinned_group}`: the server pins it to one live monitor, and to another one if that "
        f"monitor is silent for {seconds(one.pin_timeout)}. It redelivers an item that is not acknowledged within "
        f"{seconds(one.ack_wait)}. The other consumers are {' and '.join(others)}."
    )


def _buckets() -> str:
    topology = subjects.topology()
    rows = [
        (code(one.name), "keys and values", shown(one.payload), seconds(one.ttl), one.storage)
        for one in topology.buckets
    ]
    rows += [(code(one.name), "objects", "bytes", seconds(one.ttl), one.storage) for one in topology.objects]
    dead = f"\n\n## Dead letters\n\n`{subjects.DEAD_LETTER_SUBJECT}`: {dead_letters_text()}"
    return "## Buckets\n\n" + table(("bucket", "type", "content", "kept", "storage"), rows) + dead


def dead_letters_text() -> str:
    """What goes to the dead letters."""
    from trunkline_bus import DeadLetter

    return " ".join(prose(DeadLetter).split())
