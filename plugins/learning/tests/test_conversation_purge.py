"""A conversation that is purged is in no byte of the home any more, but where the report says that it is kept."""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from tests.support.home_search import files_holding
from trunkline.api.memory import Purge
from trunkline.contracts.conversations.messages import LoadConversation
from trunkline.contracts.memory.purge import MemoryPurged, PurgeMemory
from trunkline.contracts.memory.subjects import MEMORY_LOAD_CONVERSATION, MEMORY_PURGE
from trunkline.contracts.streams import STREAMS
from trunkline.contracts.turns.feed_messages import ApprovalRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.subjects import CLAIM_STORE
from trunkline.testing.platform import Platform, PlatformClient, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import RemoteFault
from trunkline_learning.files import decode, encode, strategy_path
from trunkline_learning.playbook import Strategy
from trunkline_learning.purger import LearningPurger
from trunkline_learning.turns import Provenance

from .learning_platform import WORDS_ALONE, LearningClient, facts_of, said, texts

pytestmark = pytest.mark.anyio

MARK = "Zebraquartz7431"
CONFIG = {
    "audit.detail": "verbose",
    "telemetry.capture_content": True,
    "tools.max_shown_result": 4_096,
}


class Shop:
    """A model, and tools with short and long results."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[Any]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[Any]:
        @trunkline.tool(effect="write")
        def open_shelf(name: str, lines: int = 1) -> str:
            """Open a shelf of the shop."""
            return "\n".join(f"line {number} of the shelf {name} is open" for number in range(lines))

        return [open_shelf]


async def purge(running: PlatformClient, target: str) -> MemoryPurged:
    request = PurgeMemory(target=target, confirm=target, actor="owner")
    return await running.bus.call(MEMORY_PURGE, request, timeout=120.0)


async def purged(running: PlatformClient, target: str) -> MemoryPurged:
    """Purge once the turn is over. Its feed shows the end before its message is acknowledged."""
    with anyio.fail_after(running.timeout):
        while True:
            try:
                return await purge(running, target)
            except RemoteFault as refused:
                if refused.code != "turn_running":
                    raise
            await anyio.sleep(0.05)


async def test_a_purged_conversation_is_in_no_byte_of_the_home(tmp_path: Path) -> None:
    """Journal, feed, ledger, facts, spans, audit, long results, large messages, chunks, episodes, history: all."""
    home = tmp_path / "home"
    shop = Shop()
    config = {**CONFIG, "runtime.provider_adapter": "scripted"}
    async with platform(home, plugins=[shop], config=config) as own:
        running = LearningClient(own, "main", shop.model)
        await running.prefer(WORDS_ALONE)
        first = await said(running, f"I live in {MARK}.")
        conversation = first.accepted.conversation
        for text in (
            f'call:open_shelf {{"name": "{MARK}", "lines": 2000}} ;; say:It is open, {MARK}.',
            f'call:remember {{"content": "{MARK} is far away"}} ;; say:Noted.',
            "That worked, thanks. " + f"{MARK} and more. " * 10_000,
        ):
            await said(running, text, conversation=conversation)
        other = await said(running, 'call:open_shelf {"name": "giraffe"} ;; say:A giraffe.')
        assert len(await facts_of(running)) == 1 and texts(running, "models/*/episodes/*/*.json")
        before = files_holding(home, MARK.encode())
        assert "memory/.git" in before
        for stream in ("JOURNAL", "FEED", "EFFECT", "AUDIT", "SPANS", "OBJ_results", "OBJ_claims"):
            assert any(f"/{stream}/" in name for name in before), stream
        done = await purged(running, conversation)
        assert done.conversations == (conversation,)
        assert {"JOURNAL", "FEED", "EFFECT", "AUDIT", "FACTS", "OBJ_results"} <= {
            one.where for one in done.erased
        }
        left = files_holding(home, MARK.encode())
        assert not {name for name in left if not reported(name, done)}, done.kept
        assert not {name for name in left if name.startswith("memory")}
        assert await facts_of(running) == []
        [episode] = texts(running, "models/*/episodes/*/*.json")
        assert episode["source"]["conversation"] == other.accepted.conversation
        request = LoadConversation(block="main", conversation=other.accepted.conversation)
        assert (await running.bus.call(MEMORY_LOAD_CONVERSATION, request)).count == 4
        assert [one async for one in running.bus.history(JOURNAL, conversation=other.accepted.conversation)]
        again = await running.say("say:hello", conversation=other.accepted.conversation)
        assert again.text == "hello"
    assert not {name for name in files_holding(home, MARK.encode()) if not reported(name, done)}


def reported(name: str, done: MemoryPurged) -> bool:
    """Report whether the report names the location of a file."""
    places = {kept.where for kept in done.kept}
    places |= {
        place for kept in done.kept if kept.conversation for place in re.findall(r"stream \w+", kept.what)
    }
    if name.startswith("bus/"):
        streams = (*(stream.name for stream in STREAMS), CLAIM_STORE.stream_name)
        return any(f"/{stream}/" in name and f"stream {stream}" in places for stream in streams) or (
            "files of the NATS server" in places and any(f"/{one}/" in name for one in ("INBOX", "APPROVALS"))
        )
    return any(name in place or Path(name).parts[0] in place for place in places)


@pytest.fixture(scope="module")
async def asking(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """A platform that asks before it writes."""
    config = {"runtime.provider_adapter": "scripted", "permissions.approvals": "some"}
    async with platform(tmp_path_factory.mktemp("asking"), plugins=[Shop()], config=config) as running:
        yield running


@pytest.fixture
async def client(asking: Platform) -> BlockClient:
    """A client of that platform, with a block of its own."""
    return await client_of_new_block(asking)


async def test_a_running_turn_blocks_a_purge(client: BlockClient) -> None:
    """Nothing is changed while a turn of the conversation runs; once it has ended the purge is done."""
    first = await client.say(f"say:{MARK}")
    conversation = first.accepted.conversation
    slow = await client.send("slow:40:100", conversation=conversation)
    with pytest.raises(RemoteFault) as refused:
        await purge(client, conversation)
    assert refused.value.code == "turn_running" and conversation in refused.value.message
    request = LoadConversation(block=client.block, conversation=conversation)
    assert (await client.bus.call(MEMORY_LOAD_CONVERSATION, request)).count == 2
    await client.answer(slow)
    assert (await purged(client, conversation)).conversations == (conversation,)
    assert not (await client.bus.call(MEMORY_LOAD_CONVERSATION, request)).exists


async def test_a_turn_waiting_for_a_decision_blocks_a_purge(client: BlockClient) -> None:
    """No monitor is working on the turn, and the messages that it stores at its end would restore the purged text."""
    asked = await client.send('call:write_file {"path": "a.md", "content": "finished"}')
    async for event in client.gateway.watch(asked.conversation, asked.turn):
        if isinstance(event, ApprovalRequested):
            break
    with pytest.raises(RemoteFault) as refused:
        await purge(client, asked.conversation)
    assert refused.value.code == "turn_running"


def test_a_strategy_with_another_source_stays_without_the_purged_one() -> None:
    """Strategies whose only source is the purged conversation are removed; a person's own words stay, for any
    sources."""
    sources = tuple(
        Provenance(block="main", conversation=one, turn=f"turn_{one}") for one in ("conv_a", "conv_b")
    )
    at = datetime(2026, 5, 4, tzinfo=UTC)
    strategy = Strategy(id="str-1", section="strategies", strategy="Ask first", sources=sources, timestamp=at)
    path = strategy_path("scripted", strategy.id)
    for gone, own, left in (
        ({"conv_a"}, "model", ["conv_b"]), ({"conv_a", "conv_b"}, "model", None), ({"conv_a", "conv_b"}, "person", []),
    ):  # fmt: skip
        data = encode(msgspec.structs.replace(strategy, source=own)).encode()
        kept = LearningPurger().without(path, data, Purge(target="x", conversations=frozenset(gone)))
        held = None if kept is None else decode(kept.decode(), Strategy)
        assert left == (None if held is None else [one.conversation for one in held.sources])
    assert (
        LearningPurger().without(path, data, Purge(target="x", conversations=frozenset({"conv_c"}))) == data
    )
