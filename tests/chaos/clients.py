"""Three sorts of clients, each following one turn to its end despite faults:

a reader of the feed, one that attaches later and resumes by position, and one of server-sent events over HTTP.
"""

import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import httpx

from trunkline.contracts.gateway.client import GatewayClient
from trunkline_bus import ConnectionFailed

from .programs import PlannedMessage
from .transcript import FeedTranscript, HttpTranscript

PAUSE = 0.1
LEAVES_AFTER = 10
"""After how many events a late client leaves and comes back."""


async def read_feed(
    gateway: GatewayClient, conversation: str, turn: str, seen: FeedTranscript, *, leaves_after: int = 0
) -> None:
    """Follow a turn; when the connection fails, or after so many events, reconnect by position."""
    after = ""
    while not seen.ended:
        reader = gateway.watch(conversation, turn, after=after)
        events = reader.events()
        try:
            count = 0
            async for event in events:
                seen.take(event, anyio.current_time())
                after, count = reader.position, count + 1
                if count == leaves_after and not seen.ended:
                    break
        except ConnectionFailed:
            await anyio.sleep(PAUSE)
        finally:
            with anyio.CancelScope(shield=True):
                await events.aclose()


class HttpClient:
    """PA's API with a bearer token, at any of several gateways, as behind a load balancer.

    A temporary refusal is retried, at the next gateway.
    """

    def __init__(self, client: httpx.AsyncClient, gateways: Sequence[str]) -> None:
        self._client = client
        self._gateways = deque(gateways)

    async def say(self, conversation: str | None, request: PlannedMessage, seen: HttpTranscript) -> None:
        """Send a message until it is accepted, and note the turn; ``follow`` receives its events."""
        path = f"/conversations/{conversation}/messages" if conversation else "/conversations/messages"
        headers = {"Idempotency-Key": request.mark}
        while not seen.turn:
            await self._stream("POST", path, seen, 1, headers=headers, json={"content": request.program})

    async def follow(self, seen: HttpTranscript, drop: int) -> None:
        """Follow the turn to its end, leaving once after ``drop`` events."""
        while not seen.ended:
            headers = {"Last-Event-ID": seen.position} if seen.position else {}
            await self._stream("GET", f"/api/turns/{seen.turn}/events", seen, drop, headers=headers)
            drop = 0

    async def _stream(self, method: str, path: str, seen: HttpTranscript, drop: int, **given: Any) -> None:
        try:
            async with self._client.stream(method, self._gateways[0] + path, **given) as response:
                if response.status_code == 200:
                    seen.turn = response.headers["X-Turn-ID"]
                    seen.conversation = response.headers["X-Conversation-ID"]
                    await _take(response, seen, drop)
                    return
                body = (await response.aread()).decode(errors="replace")
            if response.status_code < 500:
                seen.problems.append(f"{method} {path}: {response.status_code} {body}")
        except httpx.TransportError:
            pass  # that gateway is away
        self._gateways.rotate()
        await anyio.sleep(PAUSE)


async def _take(response: httpx.Response, seen: HttpTranscript, drop: int) -> None:
    count = 0
    async for id, event, data in _events(response):
        if not id and event == "error":
            seen.passing.append(str(data))
            return
        seen.take(event, id, data)
        count += 1
        if seen.ended or count == drop:
            return


async def _events(response: httpx.Response) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    """Yield complete events only; the half event of a broken connection is dropped."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif not line:
            if "data" in fields:
                yield fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"])
            fields = {}
