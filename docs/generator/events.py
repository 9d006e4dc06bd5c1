"""The page of events: what the feed carries, and what HTTP clients are sent of it."""

import typing

from generator.markdown import code, fields_table, prose, table
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.messages import FeedEvent, FeedItem
from trunkline.workers.gateway.http.openapi import EVENTS

INTRODUCTION = """
# Events

A turn shows what it does as events. Inside the platform they travel on the feed, and a
[channel](../how-to/write-a-channel.md) gets them from `gateway.watch()`. HTTP clients get them as server-sent events,
under other names.
"""

SSE = """
## Server-sent events

`POST /conversations/messages`, `POST /conversations/{id}/messages` and `GET /api/turns/{id}/events` answer with these.
Each event has an `id`, a position in the turn such as `1.17` or `1.7_2.5~3`; take it as it is. Send the last one as
`Last-Event-ID` (or `?from=`) to `GET /api/turns/{id}/events`, and the stream goes on behind it, without gap or repeat,
also after a restart of any worker, and where a crash of the server took events of the feed with it. The turn's id is in
the header `X-Turn-ID`, the conversation's in `X-Conversation-ID`. No two events of a stream have the same id. A
`status` named `waiting` has none, because it is about another turn. The last event is `done` or `error`. A line
`: keep-alive` comes when nothing else came for 15 seconds.

The events marked as extensions are Trunkline's own. A client that does not know them passes over them and misses
nothing of the answer but `text-reset`, which comes after a crash only. In the other events whatever is Trunkline's own
is in `metadata`. `/openapi.json` has all of this as JSON schemas under `x-events`.
"""

NOT_SHOWN = "Reasoning and steered messages are shown to channels only."

WITHIN = (ApprovalDetail, StoredResult)
"""What stands in the data of events, here and on the feed."""


def page() -> str:
    """The whole page."""
    rows = [
        (code(name), " or ".join(code(kind.__name__) for kind in kinds), _meaning(kinds[0]))
        for name, kinds in EVENTS.items()
    ]
    parts = [INTRODUCTION.strip(), SSE.strip(), table(("event", "data", "means"), rows), NOT_SHOWN]
    for kind in dict.fromkeys(kind for kinds in EVENTS.values() for kind in kinds):
        parts.append(f"### {kind.__name__}\n\n{fields_table(kind)}")
    for kind in WITHIN:
        parts.append(f"### {kind.__name__}\n\n{prose(kind)}\n\n{fields_table(kind)}")
    parts.append(f"## The feed\n\n{prose(FeedItem)}\n\n{fields_table(FeedItem)}")
    for kind in typing.get_args(FeedEvent):
        tag = kind.__struct_config__.tag
        parts.append(f"### {kind.__name__}\n\n{code(tag)}. {prose(kind)}\n\n{fields_table(kind)}")
    return "\n\n".join(parts)


def _meaning(kind: type) -> str:
    """What follows the name of the event in the docstring of its data."""
    return " ".join(prose(kind).split()).partition(": ")[2]
