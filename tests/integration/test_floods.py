"""Very many of something at once: the platform refuses it in plain words or serves it, and other requests are served
meanwhile.

The long forms, with figures, are ``python -m benchmarks.floods``.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from openai import AsyncOpenAI, RateLimitError

from tests.block_client import BlockClient, stopped_at_the_end
from tests.support.processes import process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import ToolEnded, ToolStarted
from trunkline.contracts.turns.journal_messages import TurnResumed
from trunkline.contracts.turns.subjects import FEED, JOURNAL
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, PlatformClient, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import RemoteFault, new_id

from .approval_helpers import asking, waiting

pytestmark = pytest.mark.anyio

PLACES = 5
SLOW = "wait:600"


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    """One platform with few places, for the tests without settings of their own."""
    with ScriptedProvider() as provider:
        async with platform(config={**asking(provider.url), "gateway.max_queued": PLACES}) as one:
            yield one


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own, which leaves no turn running."""
    async with stopped_at_the_end(shared) as client:
        yield client


def http_of(running: BlockClient) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {running.token}"}
    return httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60)


async def send_all(
    running: PlatformClient, conversation: str, texts: list[str]
) -> list[MessageAccepted | RemoteFault]:
    """Send them all at the same moment."""
    found: list[MessageAccepted | RemoteFault] = []

    async def send(text: str) -> None:
        try:
            found.append(await running.send(text, conversation=conversation))
        except RemoteFault as fault:
            found.append(fault)

    async with anyio.create_task_group() as tasks:
        for text in texts:
            tasks.start_soon(send, text)
    return found


async def full(running: BlockClient) -> MessageAccepted:
    """The turn that runs in a conversation which has no place for another message."""
    first = await running.send(SLOW)
    found = await send_all(running, first.conversation, [f"say:{number}" for number in range(PLACES - 1)])
    assert all(isinstance(one, MessageAccepted) for one in found)
    return first


async def test_a_conversations_queue_limit_holds_for_concurrent_messages(running: BlockClient) -> None:
    first = await running.send(SLOW)
    found = await send_all(running, first.conversation, [f"say:{number}" for number in range(40)])
    accepted = [one for one in found if isinstance(one, MessageAccepted)]
    assert len(accepted) == PLACES - 1
    for fault in found:
        if isinstance(fault, RemoteFault):
            assert fault.code == ErrorCode.RATE_LIMITED
            assert "not accepted" in fault.message and "gateway.max_queued" in fault.message
    await running.gateway.cancel(first.turn)
    for one in accepted:
        assert (await running.answer(one)).text
    assert (await running.say("say:room again", conversation=first.conversation)).text == "room again"


async def test_every_interface_reports_the_queue_limit(running: BlockClient) -> None:
    first = await full(running)
    async with http_of(running) as http:
        place = f"/conversations/{first.conversation}/messages"
        refused = await http.post(place, json={"content": "say:more"})
        assert refused.status_code == 429 and refused.json()["code"] == "rate_limited"
        assert "cancel" in refused.json()["metadata"]["reason"]
        steered = await http.post(f"/api/turns/{first.turn}/steer", json={"content": "more"})
        assert steered.status_code == 429
    async with AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client:
        with pytest.raises(RateLimitError, match="max_queued"):
            await client.chat.completions.create(
                model=running.block,
                messages=[{"role": "user", "content": "say:more"}],
                extra_headers={"X-Conversation-ID": first.conversation},
            )


async def test_a_full_conversation_blocks_neither_others_nor_its_cancel(running: BlockClient) -> None:
    first = await full(running)
    assert (await running.say("say:elsewhere")).text == "elsewhere"
    async with http_of(running) as http:
        ready = await http.get("/readyz")
    assert ready.status_code == 200, ready.text
    await running.gateway.cancel(first.turn)
    assert (await running.answer(first)).ended.reason == "cancelled"


async def test_resending_a_queued_message_adds_none(running: BlockClient) -> None:
    """Its sender may not have received the acknowledgement."""
    first = await running.send(SLOW)
    given: dict[str, Any] = {"conversation": first.conversation, "client_id": new_id()}
    accepted = await running.send("say:once", **given)
    await send_all(running, first.conversation, [f"say:{number}" for number in range(PLACES)])
    again = await running.send("say:once", **given)
    assert again.duplicate and again.turn == accepted.turn


async def test_queued_messages_do_not_slow_the_next_one() -> None:
    """The conversation's first turn runs, so memory does not know it: its block is found without reading the inbox."""
    with ScriptedProvider() as provider:
        async with platform(config=asking(provider.url)) as running:
            first, turns = await running.send(SLOW), TurnLookup(running.bus)
            costs: list[int] = []
            for count in (2, 40):
                await send_all(running, first.conversation, [f"say:{number}" for number in range(count)])
                before = received(running)
                assert await turns.block_of(first.conversation) == first.block
                assert await turns.count_queued(first.conversation) > count
                costs.append(received(running) - before)
            assert max(costs) <= 3, "the ends of journal and inbox, and a count"


def received(running: Platform) -> int:
    """Return the number of messages that the test's connection has received."""
    return running.bus.link._nc.stats["in_msgs"]


async def test_each_of_many_decisions_reports_only_its_change() -> None:
    """The turn continues from its parked state: no event is repeated, and no other monitor takes it over."""
    count = 8
    calls = " ".join(f'write_file {{"path": "{number}.md", "content": "x"}}' for number in range(count))
    with ScriptedProvider() as provider:
        async with platform(config=asking(provider.url)) as running:
            accepted = await running.send(f"parallel:{calls} ;; say:done")
            watch = running.gateway.watch(accepted.conversation, accepted.turn)
            ended: set[str] = set()
            async with aclosing(watch.events()) as events:
                for one in await waiting(running, count):
                    await running.gateway.decide(one.turn, one.call, one.call_hash, allow=True)
                    async for event in events:
                        if isinstance(event, ToolEnded) and event.call_id == one.call:
                            ended.add(event.call_id)
                            break
            assert len(ended) == count
            assert (await running.answer(accepted)).text == "done"
            keys = {"conversation": accepted.conversation, "turn": accepted.turn}
            records = [stored.data async for stored in running.bus.history(JOURNAL, **keys)]
            assert not any(isinstance(entry, TurnResumed) for record in records for entry in record.entries)
            reported = [stored.data.event async for stored in running.bus.history(FEED, **keys)]
            assert sum(isinstance(event, ToolStarted) for event in reported) == count


async def test_a_turn_written_by_another_monitor_is_read_again(tmp_path: Path) -> None:
    """The cached state of a parked turn is valid only while the journal ends at the same entry."""
    calls = " ".join(f'write_file {{"path": "{number}.md", "content": "x"}}' for number in range(3))
    with ScriptedProvider() as provider:
        config = asking(provider.url)
        workers: tuple[WorkerKind, ...] = ("gateway", "tools", "memory")
        async with process_platform(tmp_path, config=config, workers=workers) as running:
            await running.start("monitor", "first")
            accepted = await running.send(f"parallel:{calls} ;; say:done")
            asked = await waiting(running, 3)
            await running.start("monitor", "second")
            for number, one in enumerate(asked):
                running.kill(("first", "second")[number % 2])
                await running.gateway.decide(one.turn, one.call, one.call_hash, allow=True)
                await waiting(running, 2 - number)
                await running.restart(("first", "second")[number % 2])
            answer = await running.answer(accepted)
            assert answer.text == "done"
            assert sum(isinstance(event, ToolEnded) for event in answer.events) == 3
