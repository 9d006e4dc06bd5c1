"""A program that receives the requests of Trunkline, as Standard Webhooks asks for it: it checks the signature, and
ignores an id that it knows. And a sender, which tries again as senders do.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import httpx
from standardwebhooks import Webhook as StandardWebhook
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.api.testing import ScriptedFaults, scripted_address, wait_until
from trunkline.home.listeners import read_listeners

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA="
ENV = "GARDEN_SECRET"

EVENT = "event"
"""The name by which faults of a request are scripted."""


@dataclass
class Target:
    """The program. ``answers`` are the next statuses, with headers; then all requests are accepted. ``faults`` are
    those of the next requests, named ``EVENT``. ``requests`` counts all, ``events`` those that are new.
    """

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    faults: ScriptedFaults[tuple[int, dict[str, str]]] = field(default_factory=ScriptedFaults)
    requests: list[str] = field(default_factory=list)
    bodies: dict[str, set[str]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    async def receive(self, request: Request) -> Response:
        """Take one request."""
        body = (await request.body()).decode()
        StandardWebhook(SECRET).verify(body, dict(request.headers))
        id = request.headers["webhook-id"]
        self.requests.append(id)
        if (replaced := self.faults.begin(EVENT)) is not None:
            return Response(status_code=replaced[0], headers=replaced[1])
        if self.answers:
            status, headers = self.answers.pop(0)
            return Response(status_code=status, headers=headers)
        if id not in self.bodies:
            self.events.append(json.loads(body))
        self.bodies.setdefault(id, set()).add(body)
        self.faults.end(EVENT)
        return Response(status_code=204)

    def texts(self, kind: str = "message.answered") -> list[str]:
        """The texts of the events of a type."""
        return [event["data"]["text"] for event in self.events if event["type"] == kind]


@asynccontextmanager
async def target() -> AsyncIterator[Target]:
    """The program while it runs."""
    one = Target()
    app = Starlette(routes=[Route("/events", one.receive, methods=["POST"])])
    async with scripted_address(app) as address:
        one.url = f"{address}/events"
        yield one


@dataclass
class Sender:
    """A program that sends to the webhook of a home."""

    home: Path
    webhook: str = "garden"

    async def url(self) -> str:
        """The address, when the channel listens."""
        await wait_until(lambda: self._listening() is not None)
        return f"{self._listening()}/webhooks/{self.webhook}"

    def _listening(self) -> str | None:
        listeners = read_listeners(self.home / "run")
        return next((one.address for one in listeners if "channels.webhook" in one.purpose), None)

    async def post(self, body: str, *, id: str | None = None, **changes: str) -> httpx.Response:
        """Send a signed request once. ``changes`` replace headers, ``_`` standing for ``-``."""
        number = id or str(uuid4())
        now = datetime.now(UTC)
        headers = {
            "webhook-id": number,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": StandardWebhook(SECRET).sign(number, now, body),
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        async with httpx.AsyncClient(timeout=30) as http:
            return await http.post(await self.url(), content=body.encode(), headers=headers)

    async def say(self, text: str, *, thread: str = "t", id: str | None = None) -> httpx.Response:
        """Send a message until it is accepted or refused, as senders of webhooks do."""
        number = id or str(uuid4())
        body = json.dumps({"text": text, "thread": thread})
        while True:
            try:
                answer = await self.post(body, id=number)
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer
            except httpx.HTTPError:
                pass  # the process was killed: another one listens soon
            await anyio.sleep(0.05)
