"""Reading server-sent events as a client would, and holding each of them against the contract."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import msgspec

from trunkline.workers.gateway.http.openapi.openapi_document import EVENTS
from trunkline.workers.gateway.http.schemas.event_schemas import TextDeltaData, TextResetData


@dataclass
class Event:
    """An event of the stream; ``data`` is decoded strictly by the contract."""

    name: str
    id: str
    data: msgspec.Struct


def decoded(name: str, text: str) -> msgspec.Struct:
    """The data as one of the shapes of the contract, with no field too many."""
    shapes = EVENTS[name]
    for shape in shapes[:-1]:
        try:
            return msgspec.json.decode(text, type=shape)
        except msgspec.ValidationError:
            continue
    return msgspec.json.decode(text, type=shapes[-1])


async def events_in(response: httpx.Response) -> AsyncIterator[Event]:
    """The events as they come."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            assert name not in fields, "an event has each field once"
            fields[name] = value
        elif fields:
            assert set(fields) <= {"id", "event", "data"}
            yield Event(fields["event"], fields.get("id", ""), decoded(fields["event"], fields["data"]))
            fields = {}


def text_of(events: list[Event]) -> str:
    """Return the text that a client shows after these events."""
    text = ""
    for event in events:
        match event.data:
            case TextDeltaData(content=content):
                text += content
            case TextResetData(content=content):
                text = content
    return text


async def converse(
    http: httpx.AsyncClient, path: str, body: object, **headers: str
) -> tuple[httpx.Response, list[Event]]:
    """Send a message and read the whole answer."""
    async with http.stream("POST", path, json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        return response, [event async for event in events_in(response)]
