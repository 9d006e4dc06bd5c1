"""The page of events: what the feed carries, and what HTTP clients are sent of it."""

import typing

from generator.markdown import code, fields_table, prose, table
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.feed_messages import FeedEvent, FeedItem
from trunkline.workers.gateway.http.openai.responses.response_events import RESPONSE_EVENTS
from trunkline.workers.gateway.http.openai.responses.response_socket import SocketError
from trunkline.workers.gateway.http.openapi.openapi_document import EVENTS, EXTENSIONS

INTRODUCTION = """
# Events

A turn reports its progress as events. Inside the platform they are messages of the feed, and a
[channel](../how-to/write-a-channel.md) gets them from `gateway.watch()`. HTTP clients get them as server-sent events,
under other names.
"""

SSE = """
## Server-sent events

`POST /conversations/messages`, `POST /conversations/{id}/messages` and `GET /api/turns/{id}/events` answer with these.
Each event has an `id`, a position in the turn such as `1.17` or `1.7_2.5~3`; do not interpret it. Send the last id as
`Last-Event-ID` (or `?from=`) to `GET /api/turns/{id}/events`, and the stream continues after that event without gap or
repetition, even after a restart of any worker or a crash of the server that lost events of the feed. The turn's id is
in the header `X-Turn-ID`, the conversation's in `X-Conversation-ID`. No two events of a stream have the same id. A
`status` named `waiting` has no id, because it is about another turn. The last event is `done` or `error`. The server
sends the line `: keep-alive` after 15 seconds without an event.

Events marked as extensions are specific to Trunkline. A client that ignores them still gets the whole answer, with one
exception: after a crash it has to obey `text-reset`. In the other events, `metadata` has what is specific to Trunkline.
`/openapi.json` has all events as JSON schemas under `x-events`.
"""

RESPONSES = """
## The events of a response

`POST /v1/responses` with `stream`, `GET /v1/responses/{id}?stream=true`, and the WebSocket at `/v1/responses` send
these. `sequence_number` counts them from 0 without gaps. The events are a function of the turn, so whoever reads the
response again gets the same events with the same numbers. `GET /v1/responses/{id}?stream=true&starting_after=N`
continues a response in the background after event N, even after a restart of any worker. The stream of another response
may also show an approval of an earlier turn that its turn waits for, so only streams of responses in the background can
be resumed. The last event is `response.completed`, `response.incomplete`, `response.failed` or `error`; server-sent
events then end with `[DONE]`. After `error` the response may go on, and can be retrieved: the stream ends so when text
that was sent is no longer valid, because another monitor asked the model again and it answered otherwise.

Each model call with text is one message. Tools that Trunkline runs itself have no events. Reasoning is shown if the
request has `reasoning.summary`.
"""

NOT_SHOWN = "Only channels receive reasoning and steered messages."

WITHIN = (ApprovalDetail, StoredResult)
"""What stands in the data of events, here and on the feed."""


def page() -> str:
    """The whole page."""
    rows = [
        (
            f"{code(name)} (extension)" if name in EXTENSIONS else code(name),
            " or ".join(code(kind.__name__) for kind in kinds),
            _meaning(kinds[0]),
        )
        for name, kinds in EVENTS.items()
    ]
    parts = [INTRODUCTION.strip(), SSE.strip(), table(("event", "data", "means"), rows), NOT_SHOWN]
    for kind in dict.fromkeys(kind for kinds in EVENTS.values() for kind in kinds):
        parts.append(f"### {kind.__name__}\n\n{fields_table(kind)}")
    for kind in WITHIN:
        parts.append(f"### {kind.__name__}\n\n{prose(kind)}\n\n{fields_table(kind)}")
    parts.append(_responses())
    parts.append(f"## The feed\n\n{prose(FeedItem)}\n\n{fields_table(FeedItem)}")
    for kind in typing.get_args(FeedEvent):
        tag = kind.__struct_config__.tag
        parts.append(f"### {kind.__name__}\n\n{code(tag)}. {prose(kind)}\n\n{fields_table(kind)}")
    return "\n\n".join(parts)


def _meaning(kind: type) -> str:
    """What follows the name of the event in the docstring of its data."""
    return " ".join(prose(kind).split()).partition(": ")[2]


def _responses() -> str:
    """The section of the events of a response."""
    kinds = (*RESPONSE_EVENTS, SocketError)
    rows = [(code(str(kind.__struct_config__.tag)), prose(kind).replace("\n", " ")) for kind in kinds]
    parts = [RESPONSES.strip(), table(("event", "means"), rows)]
    parts += [f"### {kind.__name__}\n\n{fields_table(kind)}" for kind in kinds]
    return "\n\n".join(parts)
