"""The page of the WebSocket at ``/ws``: every envelope in both directions."""

import typing
from collections.abc import Iterable

import msgspec

from generator.markdown import code, fields_table, prose, table
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import StoredResult
from trunkline.workers.gateway.http.schemas.turn_schemas import UsageCount
from trunkline.workers.gateway.socket.client_envelopes import ClientMessage
from trunkline.workers.gateway.socket.server_envelopes import ServerMessage

INTRODUCTION = """
# WebSocket

A client opens one socket at `/ws` and has everything on it: it sends messages, decides about approvals, and watches
turns, conversations, blocks or everything. [How to use it](../how-to/websocket.md). The same is possible over
[HTTP and server-sent events](http.md).

Every message in both directions is a JSON object, an *envelope*:

| field | type | means |
|---|---|---|
| `type` | text | what the envelope is: the types below |
| `id` | text | the sender's name for it, of 1 to 200 characters |
| `timestamp` | time (ISO 8601) | when it was made; the server does not use that of a client |
| `payload` | object | its content, by its type |

The server sends exactly the documented fields, and leaves out a field of a payload at its default. It ignores unknown
fields of a client. `/openapi.json` has all envelopes as the schemas `ClientMessage` and `ServerMessage`.

## Handshake

The credential is the same as [over HTTP](http.md): a header, or the cookie of a session. A browser's script cannot send
a header, so it may ask for a ticket by `POST /api/ws-ticket` and offer the sub-protocols `trunkline.v1` and
`ticket.TICKET`. A ticket opens one socket, within 30 seconds. The server takes the sub-protocol `trunkline.v1` if it is
offered.

A handshake without a valid credential, or with two, is answered by 401. One from a page of another origin is answered
by 403, and so is one from a browser that names no origin: the origin has to be the server's own, under its own name or
one of `gateway.allowed_hosts`. One above `gateway.max_sockets` is answered by 429.

## Replies

Every request gets one reply with `reply_to`, the id of the request: `ack`, `pong` or `error`. Requests are done in
their order. The `ack` of `chat`, `steer`, `cancel` and `approval_response` is sent when the message is on disk. Without
a reply, send the request again: with the same `client_id`, a message counts once.

A message that is no envelope, has no id, a wrong time, an unknown type or a type that only the server sends is answered
by `error`, and changes nothing; the socket stays open.

## Subscriptions

The events of a turn have a `position`. Subscribe again with `after: {TURN: POSITION}`, on any socket, and the events
after it follow, without gap or repetition, also after a restart of any worker. An event has the same `id` on every
socket; after another monitor took a turn over, on every socket that began at the same position.

Several subscriptions of a socket may show the same turn, such as its conversation and everything with `events`. Its
events are sent once, in their order, until the last of these subscriptions ends. A subscription without `after` for
that turn goes on where the socket is. One whose `after` names another position than that at which the socket began
sends the turn again from there, for all of them. States (`status`, approvals) may come twice, with the same `id`.

`bankrupt`, `budget_reset` and `panic` belong to no subscription. A socket gets each of them once, from its first
subscription on, if it watches anything in that block; where all blocks are meant, whatever it watches. While
everything is stopped, a socket gets `panic` with its first subscription.

A client that reads too slowly gets `resync`, and then what it has missed: the following events of a turn, or the
present states.

## The end

| code | means |
|---|---|
| 1001 | the server stops: connect again |
| 1007 | a text message was not UTF-8 |
| 1009 | a message was too large |
| 1011 | the client did not answer a ping for `gateway.ping_interval`, 20 seconds |
| 4401 | the access token or session has ended |
"""


def page() -> str:
    """The whole page."""
    client, server = typing.get_args(ClientMessage), typing.get_args(ServerMessage)
    parts = [INTRODUCTION.strip(), "## From the client", _types(client), *_sections(client)]
    parts += ["## From the server", _types(server), *_sections(server)]
    for kind in (UsageCount, ApprovalDetail, StoredResult):
        parts.append(f"### {kind.__name__}\n\n{prose(kind)}\n\n{fields_table(kind)}")
    return "\n\n".join(parts)


def _types(kinds: Iterable[type[msgspec.Struct]]) -> str:
    rows = [(code(str(kind.__struct_config__.tag)), prose(kind).replace("\n", " ")) for kind in kinds]
    return table(("type", "means"), rows)


def _sections(kinds: Iterable[type[msgspec.Struct]]) -> list[str]:
    """Return a section for the payload of each envelope."""
    parts = []
    for kind in kinds:
        payload = typing.get_type_hints(kind)["payload"]
        for variant in typing.get_args(payload) or (payload,):
            tag = variant.__struct_config__.tag
            name = code(str(kind.__struct_config__.tag)) + (f" of the `kind` {code(str(tag))}" if tag else "")
            said = prose(variant)
            parts.append("\n\n".join(filter(None, (f"### {name}", said, fields_table(variant)))))
    return parts
