"""Two gateways serve the same conversations and feeds, and a client of a killed one continues at the other."""

from pathlib import Path

import anyio
import httpx
import pytest

from tests.chaos.clients import HttpClient
from tests.chaos.programs import PlannedMessage
from tests.chaos.transcript import HttpTranscript
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import provider_process

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

WORDS = " ".join(f"word-{number}" for number in range(1, 81))


async def test_a_client_continues_at_the_other_gateway(tmp_path: Path) -> None:
    """The second gateway shows messages accepted by the first from the start. When the first is killed in
    mid-stream, its client continues at the second by ``Last-Event-ID`` without gap or repeat, and sends further
    messages in the same conversation."""
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
        }
        kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "monitor", "tools")
        async with process_platform(tmp_path, config=config, workers=kinds) as running:
            other = await running.start("gateway", "gateway-2")
            headers = {"Authorization": f"Bearer {running.token}"}
            async with httpx.AsyncClient(headers=headers, timeout=30) as http:
                moving = HttpClient(http, [running.url, other.address])
                seen, beside = await watched(running, moving, HttpClient(http, [other.address]))
                assert seen.text == beside.text == WORDS
                assert not seen.problems and not beside.problems
                view = (await http.get(f"{other.address}/conversations/{seen.conversation}")).json()
                assert [message["role"] for message in view["messages"]] == ["user", "assistant"]
                again = HttpTranscript("again")
                await moving.say(seen.conversation, request("again", "say:still here"), again)
                await moving.follow(again, 0)
                assert (again.conversation, again.text) == (seen.conversation, "still here")


async def watched(
    running: ProcessPlatform, moving: HttpClient, staying: HttpClient
) -> tuple[HttpTranscript, HttpTranscript]:
    """A turn as a client sees it whose gateway dies, and as one at the other gateway sees it."""
    seen, beside = HttpTranscript("moving"), HttpTranscript("staying")
    await moving.say(None, request("first", "slow:80:50"), seen)
    beside.turn = seen.turn
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(staying.follow, beside, 0)
        tasks.start_soon(moving.follow, seen, 0)
        with anyio.fail_after(60):
            while len(seen.text) < 40:  # noqa: ASYNC110 - another task notes it
                await anyio.sleep(0.02)
        assert not seen.ended
        running.kill("gateway")
    return seen, beside


def request(mark: str, program: str) -> PlannedMessage:
    """A message."""
    return PlannedMessage(kind="scale", mark=mark, program=program, ending=None)
