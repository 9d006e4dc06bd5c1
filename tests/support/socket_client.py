"""A client of ``/ws`` for tests: it keeps the envelope's rules, and holds each envelope of the server against them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from trunkline.workers.gateway.socket.event_envelopes import (
    ChatEnvelope,
    TextResetEnvelope,
    TurnEndedEnvelope,
)
from trunkline.workers.gateway.socket.server_envelopes import (
    AckEnvelope,
    ErrorEnvelope,
    ResyncEnvelope,
    ServerMessage,
)
from trunkline_bus import new_id

NOW = "2026-11-27T12:00:00Z"


class SocketClient:
    """One open socket. ``received`` are the envelopes that were read."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.received: list[ServerMessage] = []

    async def send(self, type: str, payload: dict[str, Any], *, id: str | None = None) -> str:
        """Send an envelope, and return its id."""
        id = id or new_id("t")
        envelope = {"type": type, "id": id, "timestamp": NOW, "payload": payload}
        await self.connection.send(msgspec.json.encode(envelope).decode())
        return id

    async def receive(self, seconds: float = 60.0) -> ServerMessage:
        """Return the next envelope. It has exactly the documented fields."""
        with anyio.fail_after(seconds):
            text = await self.connection.recv()
        assert isinstance(text, str)
        envelope: ServerMessage = msgspec.json.decode(text, type=ServerMessage)
        self.received.append(envelope)
        return envelope

    async def reply(self, id: str) -> AckEnvelope | ErrorEnvelope:
        """Read up to the reply to a request."""
        while True:
            envelope = await self.receive()
            if isinstance(envelope, AckEnvelope | ErrorEnvelope) and envelope.payload.reply_to == id:
                return envelope

    async def ask(self, type: str, **payload: Any) -> AckEnvelope | ErrorEnvelope:
        """Send a request and return its reply."""
        return await self.reply(await self.send(type, payload))

    async def done(self, type: str, **payload: Any) -> AckEnvelope:
        """Send a request that succeeds."""
        reply = await self.ask(type, **payload)
        assert isinstance(reply, AckEnvelope), reply
        return reply

    async def until_end(self, turn: str) -> list[ServerMessage]:
        """Read up to the end of a turn, and return all envelopes of the turn that were read."""
        while not any(
            isinstance(one, TurnEndedEnvelope) and one.payload.turn == turn for one in self.received
        ):
            await self.receive()
        return self.of(turn)

    def of(self, turn: str) -> list[ServerMessage]:
        """The received events of a turn."""
        events = [one for one in self.received if not isinstance(one, ResyncEnvelope)]
        return [one for one in events if getattr(one.payload, "position", "") and turn_of(one) == turn]


def turn_of(envelope: ServerMessage) -> str:
    return str(getattr(envelope.payload, "turn", ""))


@asynccontextmanager
async def open_socket(url: str, token: str | None, **headers: str) -> AsyncIterator[SocketClient]:
    """A client of the gateway at this address."""
    given = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **headers}
    async with connect(
        url.replace("http", "ws", 1) + "/ws",
        additional_headers=given,
        open_timeout=30,
        max_size=None,
        ping_interval=None,  # a busy machine is no failure
    ) as connection:
        yield SocketClient(connection)


def shown(events: list[ServerMessage]) -> str:
    """The answer that a client shows after these events. A gap or a repeat of text fails."""
    texts: dict[int, str] = {}
    for event in events:
        match event:
            case TextResetEnvelope(payload=reset):
                texts.pop(reset.step, None)
            case ChatEnvelope(payload=chat) if chat.role == "assistant":
                assert chat.offset == len(texts.get(chat.step, "")), "a gap or a repeat"
                texts[chat.step] = texts.get(chat.step, "") + chat.text
    return "".join(texts[step] for step in sorted(texts))
