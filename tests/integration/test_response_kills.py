"""Real processes are killed while a response is written: one turn, every event once, and nothing lost.

A client that is cut off resumes the stream after the last event that arrived; a client that got no answer at all
repeats its request.
"""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.turns.journal_messages import TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

WORDS = [f"word-{number}" for number in range(1, 41)]
PROGRAM = "slow:40:40"
PICTURE = b"\x89PNG\r\n\x1a\n" + b"picture" * 30_000


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    home = tmp_path_factory.mktemp("kills")
    async with process_platform(home, config=config, workers=ALL_WORKERS) as running:
        yield running


class ResumingClient:
    """Reads a response in the background over HTTP; when the stream is cut, reads on after the last event."""

    def __init__(self, running: ProcessPlatform) -> None:
        self.running = running
        self.events: list[dict[str, Any]] = []
        self.cuts = 0

    @property
    def id(self) -> str:
        return str(self.events[0]["response"]["id"])

    async def read(self, body: dict[str, Any], victim: str, *, after: int) -> None:
        """Read to the end, and kill the victim after some events."""
        killed = False
        with anyio.fail_after(120):
            while not self.events or self.events[-1]["type"] != "response.completed":
                try:
                    async for event in self._stream(body):
                        self.events.append(event)
                        if len(self.events) >= after and not killed:
                            killed = True
                            await kill_and_restart(self.running, victim)
                except httpx.HTTPError:
                    self.cuts += 1
                    await anyio.sleep(0.05)

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        headers = {"authorization": f"Bearer {self.running.token}"}
        async with httpx.AsyncClient(base_url=self.running.url, headers=headers, timeout=60) as http:
            if self.events:
                query = {"stream": "true", "starting_after": str(self.events[-1]["sequence_number"])}
                asked = http.stream("GET", f"/v1/responses/{self.id}", params=query)
            else:
                asked = http.stream("POST", "/v1/responses", json=body)
            async with asked as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        yield json.loads(line[6:])


async def kill_and_restart(running: ProcessPlatform, victim: str) -> None:
    running.kill(victim)
    if victim != "nats":
        await running.restart(victim)


async def started_turns(running: ProcessPlatform, text: str) -> int:
    """Return how many turns began with this message."""
    records = [one.data async for one in running.bus.history(JOURNAL, after=0)]
    entries = [entry for record in records for entry in record.entries]
    return sum(isinstance(entry, TurnStarted) and entry.request.message.content == text for entry in entries)


@pytest.mark.parametrize("victim", ["gateway", "monitor", "memory", "nats"])
async def test_a_background_stream_survives_a_kill(victim: str, module_platform: ProcessPlatform) -> None:
    """The numbers of the events that the client has have no gap and no repetition, and its text is whole."""
    async with shared_platform(module_platform) as running:
        client = ResumingClient(running)
        text = f"{PROGRAM} ;; say:{victim}"
        body = {"model": "main", "input": text, "stream": True, "background": True}
        await client.read(body, victim, after=12)
        assert [event["sequence_number"] for event in client.events] == list(range(len(client.events)))
        deltas = [e["delta"] for e in client.events if e["type"] == "response.output_text.delta"]
        assert "".join(deltas).split()[:40] == WORDS
        last = client.events[-1]["response"]
        assert "".join(deltas) == last["output"][0]["content"][0]["text"]
        assert await started_turns(running, text) == 1
        async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
            headers = {"authorization": f"Bearer {running.token}"}
            whole = (await http.get(f"/v1/responses/{client.id}", headers=headers)).json()
        assert whole["output"] == last["output"] and whole["status"] == "completed"


async def test_a_repeated_request_after_a_kill_is_the_same_response(module_platform: ProcessPlatform) -> None:
    """The gateway is killed before it answered: the client's automatic repeat gets the response of the one turn, with
    the picture that the first request stored."""
    async with shared_platform(module_platform) as running:
        url = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
        text = "slow:10:80 ;; say:once"
        parts = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": url}]
        body = {"model": "main", "input": [{"role": "user", "content": parts}]}

        async def post(count: str) -> httpx.Response:
            headers = {"authorization": f"Bearer {running.token}", "x-stainless-retry-count": count}
            async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
                return await http.post("/v1/responses", json=body)

        async def killed() -> None:
            with anyio.fail_after(60):
                while await started_turns(running, text) == 0:  # noqa: ASYNC110  it is asked over the bus
                    await anyio.sleep(0.02)
            await kill_and_restart(running, "gateway")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(killed)
            with pytest.raises(httpx.HTTPError):
                await post("0")
        answers = [(await post(count)).json() for count in ("1", "2")]
        assert answers[0]["id"] == answers[1]["id"] and answers[0]["status"] == "completed"
        assert await started_turns(running, text) == 1


async def test_a_socket_is_lost_with_the_gateway_and_the_response_is_not(
    module_platform: ProcessPlatform,
) -> None:
    """A stored response of a socket that was cut can be retrieved, and continued on a new socket."""
    async with shared_platform(module_platform) as running:
        bearer = {"Authorization": f"Bearer {running.token}"}

        def socket() -> connect:
            return connect(running.url.replace("http", "ws", 1) + "/v1/responses", additional_headers=bearer)

        async def answer(more: dict[str, Any], *, kill_after: int = 0) -> dict[str, Any]:
            events: list[dict[str, Any]] = []
            async with socket() as connection:
                await connection.send(json.dumps({"type": "response.create", "model": "main", **more}))
                while not events or events[-1]["type"] != "response.completed":
                    events.append(json.loads(await connection.recv()))
                    cut.append(events[-1])
                    if len(events) == kill_after:
                        running.kill("gateway")
            return dict(events[-1]["response"])

        cut: list[dict[str, Any]] = []
        with pytest.raises(ConnectionClosed), anyio.fail_after(60):
            await answer({"input": "slow:20:40"}, kill_after=6)
        await running.restart("gateway")
        id = cut[0]["response"]["id"]
        with anyio.fail_after(60):
            following = await answer({"input": "say:Still here.", "previous_response_id": id})
        assert following["output"][0]["content"][0]["text"] == "Still here."
        async with httpx.AsyncClient(base_url=running.url, headers=bearer, timeout=60) as http:
            whole = (await http.get(f"/v1/responses/{id}")).json()
        assert whole["status"] == "completed"
        assert whole["output"][0]["content"][0]["text"].split() == WORDS[:20]
