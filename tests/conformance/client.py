"""A client of the Gateway API that knows nothing of Trunkline. It holds all that it is sent against the contract."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import msgspec

from . import contract
from .contract import Event

T = TypeVar("T")


@dataclass
class Reply:
    """The reply to a message."""

    status: int
    conversation: str
    turn: str
    events: list[Event] = field(default_factory=list)
    refused: contract.Error | None = None

    @property
    def text(self) -> str:
        """All text, in order."""
        return "".join(event.data.content for event in self.events if event.name == "text-delta")

    @property
    def names(self) -> list[str]:
        """The names of the events, one for each run of text."""
        found: list[str] = []
        for event in self.events:
            if event.name != "text-delta" or found[-1:] != ["text-delta"]:
                found.append(event.name)
        return found

    @property
    def code(self) -> str | None:
        """The code with which the turn failed."""
        last = self.events[-1]
        return last.data.code if last.name == "error" else None

    @property
    def message_id(self) -> str:
        """The stored message."""
        assert self.events[-1].name == "done", self.events[-1]
        return str(self.events[-1].data.message_id)

    def results(self) -> list[str]:
        """Return the results of the tools, with failures marked."""
        return [
            event.data.output if isinstance(event.data, contract.ToolOutput) else f"error: {event.data.error}"
            for event in self.events
            if event.name == "tool-result"
        ]


class Client:
    """``received`` keeps every byte that was received, headers too, for tests that search for forbidden text."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.received = bytearray()

    async def say(self, content: str, conversation: str | None = None, **metadata: Any) -> Reply:
        """Send a message and read the answer to its end."""
        path = f"/conversations/{conversation}/messages" if conversation else "/conversations/messages"
        body = {"content": content, **({"metadata": metadata} if metadata else {})}
        async with self.http.stream("POST", path, json=body) as response:
            return await self._reply(response)

    async def post(self, path: str, content: bytes) -> Reply:
        """Send any bytes as a message."""
        async with self.http.stream("POST", path, content=content) as response:
            return await self._reply(response)

    async def watch(self, turn: str, after: str = "") -> Reply:
        """Read a turn's events from behind ``after``."""
        headers = {"last-event-id": after} if after else {}
        async with self.http.stream("GET", f"/api/turns/{turn}/events", headers=headers) as response:
            return await self._reply(response)

    async def page(self, **query: Any) -> contract.Page:
        """The list of conversations."""
        return await self._get("/conversations", contract.Page, query)

    async def conversation(self, id: str) -> contract.Conversation:
        """A conversation as PA shows it."""
        return await self._get(f"/conversations/{id}", contract.Conversation)

    async def whole(self, id: str) -> contract.WholeConversation:
        """A conversation with its tool results."""
        return await self._get(f"/conversations/{id}", contract.WholeConversation, {"include": "tools"})

    async def refused(self, method: str, path: str, **given: Any) -> contract.Error:
        """The error of a request that must fail."""
        response = await self.http.request(method, path, **given)
        self._hear(response, response.content)
        return contract.error_of(response.status_code, response.content)

    async def _get(self, path: str, shape: type[T], query: Mapping[str, Any] | None = None) -> T:
        response = await self.http.get(path, params=query)
        self._hear(response, response.content)
        assert response.status_code == 200, response.text
        return msgspec.json.decode(response.content, type=shape)

    async def _reply(self, response: httpx.Response) -> Reply:
        reply = Reply(
            response.status_code,
            response.headers.get("x-conversation-id", ""),
            response.headers.get("x-turn-id", ""),
        )
        if response.status_code != 200:
            body = await response.aread()
            self._hear(response, body)
            reply.refused = contract.error_of(response.status_code, body)
            return reply
        assert response.headers["content-type"].startswith("text/event-stream")
        assert reply.conversation
        self._hear(response, b"")
        async for event in self._events(response):
            reply.events.append(event)
        names = [event.name for event in reply.events]
        assert names[-1] in ("done", "error") and not {"done", "error"} & set(names[:-1]), names
        return reply

    async def _events(self, response: httpx.Response) -> AsyncIterator[Event]:
        rest = b""
        async for data in response.aiter_bytes():
            self.received += data
            *blocks, rest = (rest + data).split(b"\n\n")
            for block in blocks:
                if event := contract.event_of(block, contract.GATEWAY_EVENTS):
                    yield event
        assert rest == b"", f"cut within an event: {rest!r}"

    def _hear(self, response: httpx.Response, body: bytes) -> None:
        for name, value in response.headers.raw:
            self.received += name + b": " + value + b"\n"
        self.received += body
