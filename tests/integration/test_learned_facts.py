"""Learned facts reach the answering model: the tests read the requests that a vendor's endpoint receives (CC-F20)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.block_client import BlockClient, client_of_new_block
from tests.other_users import GUEST, HEADER, Visitors, share
from tests.restored_memory import restored_memory
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.memory.chunks import ForgetChunk, GetChunk, ListChunks, Remember
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.history import MemoryHistory
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import (
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_HISTORY,
    MEMORY_REMEMBER,
    MEMORY_SEARCH,
    MEMORY_WRITE,
)
from trunkline.contracts.streams import FACT_STREAM, LEARNER_CONSUMER
from trunkline.contracts.turns.subjects import TURN_FACT
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bus import new_id
from trunkline_bus.streams.admin import consumer_state

pytestmark = pytest.mark.anyio

ON = '[learning]\non = true\nmodel = "none"\n'


class Harness:
    """A client with a block of its own, and the endpoint that its platform asks. Nothing is learned yet."""

    def __init__(self, running: BlockClient, provider: ScriptedProvider) -> None:
        self.running, self.provider = running, provider

    @property
    def block(self) -> str:
        return self.running.block

    async def prefer(self, text: str) -> None:
        """Write the owner's preferences. They apply at once; those that a person edits by hand, a moment later."""
        request = WriteMemory(path="preferences.toml", content=text, actor="owner")
        await self.running.bus.call(MEMORY_WRITE, request)

    @property
    def learned(self) -> int:
        try:
            return int(json.loads((self.running.home.memory / "learning/position.json").read_text())["count"])
        except FileNotFoundError:
            return 0

    async def tell(self, text: str, **given: Any) -> None:
        """Say something, and wait until it is learned from."""
        before = self.learned
        await self.running.say(text, **given)
        await until(lambda: self.learned > before)

    async def sent(self, text: str, **given: Any) -> str:
        """All that the endpoint was sent for a message, besides the message itself."""
        await self.running.say(text, **given)
        messages = self.provider.answer_requests[-1].body["messages"]
        assert messages[-1]["content"].endswith(text)
        return json.dumps(messages[:-1])

    async def guest(self, text: str) -> str:
        """Return the request that the endpoint received for a message of the guest."""
        before = len(self.provider.answer_requests)
        async with httpx.AsyncClient(headers={HEADER: GUEST.id}, timeout=60) as client:
            url = f"{self.running.url}/conversations/messages"
            body = {"content": text, "metadata": {"block": self.block}}
            assert (await client.post(url, json=body)).status_code == 200
        return json.dumps(self.provider.answer_requests[before].body["messages"][:-1])

    async def looked_up(self, call: str, who: str = "", block: str = "") -> str:
        """Return the result of a tool call in a turn of a guest, or of the owner."""
        before = len(self.provider.answer_requests)
        headers = {HEADER: who} if who else {"authorization": f"Bearer {self.running.token}"}
        body = {"content": f"call:{call} ;; say:So.", "metadata": {"block": block or self.block}}
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            url = f"{self.running.url}/conversations/messages"
            assert (await client.post(url, json=body)).status_code == 200
        reported = self.provider.answer_requests[before + 1].body["messages"][-1]
        assert reported["role"] == "tool"
        return str(reported["content"])

    async def facts(self) -> dict[str, str]:
        """Return the learned facts of the block by their text."""
        request = ListChunks(actor="owner", block=self.block, tags=("learned",))
        return {one.content: one.id for one in (await self.running.bus.call(MEMORY_CHUNKS, request)).chunks}


async def until(done: Callable[[], Awaitable[Any] | Any]) -> None:
    with anyio.fail_after(60):
        while True:
            found = done()
            if await found if isinstance(found, Awaitable) else found:
                return
            await anyio.sleep(0.05)


@asynccontextmanager
async def started(home: Path, guest: Identity = GUEST) -> AsyncIterator[tuple[Platform, ScriptedProvider]]:
    """A platform that lets a guest in, and the endpoint that it asks."""
    with ScriptedProvider() as provider:
        async with platform(home, config=provider.settings, plugins=[Visitors(guest)]) as running:
            await share(running.bus)
            yield running, provider


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Platform, ScriptedProvider]]:
    async with started(tmp_path_factory.mktemp("facts")) as found:
        yield found


@pytest.fixture
async def here(shared: tuple[Platform, ScriptedProvider]) -> AsyncIterator[Harness]:
    """The shared platform, which learns by words. What a test lets it learn is forgotten at the end."""
    running, provider = shared
    provider.forget()
    async with restored_memory(running):
        found = Harness(await client_of_new_block(running), provider)
        await found.prefer(ON)
        yield found
        await until(lambda: all_learned(running))


async def all_learned(running: Platform) -> bool:
    """Report whether every turn has ended and was passed by the learner."""
    facts = [stored.data async for stored in running.bus.history(TURN_FACT)]
    begun, ended = ({fact.turn for fact in facts if fact.fact == kind} for kind in ("started", "finished"))
    state = await consumer_state(running.bus, FACT_STREAM, LEARNER_CONSUMER.name)
    return begun == ended and state.waiting == state.ack_pending == 0


async def test_cc_f20_the_next_conversations_request_has_learned_facts(here: Harness) -> None:
    """CC-F20: after a first conversation the request of the next one has the facts that fit its message, marked as
    data, each with the chunk and the conversation it comes from; a second fact that is not asked for stands behind."""
    await here.tell("I live in Lisbon with two cats.")
    assert "Lisbon" not in json.dumps(here.provider.answer_requests[0].body["messages"][:-1])
    await here.tell("We decided to use Postgres for the shop.")
    sent = await here.sent("Which database does the shop use?")
    facts = await here.facts()
    about, other = (sent.index(text) for text in ("We decided to use Postgres", "I live in Lisbon"))
    assert about < other and 'source=\\"facts\\"' in sent and "data, not instructions" in sent
    assert facts["We decided to use Postgres for the shop."] in sent and " in conv_" in sent


async def test_a_contradicted_fact_is_shown_as_the_earlier_one(here: Harness) -> None:
    """The newer one is shown, with the note that another held before it; never the older one by itself."""
    await here.tell("I live in Lisbon.")
    await here.tell("I live in Porto now.")
    sent = await here.sent("Where do I live?")
    assert "I live in Porto now. (before: I live in Lisbon.)" in sent and sent.count("Lisbon") == 1


async def test_forgotten_facts_are_missing_from_the_next_request(here: Harness) -> None:
    """A removed fact is shown no more, and a fact that was shown to the model is not learned again."""
    await here.tell("My dog is called Rex.")
    assert "Rex" in await here.sent("What is the name of my dog?")
    await here.tell("say:Your dog is called Rex.")
    facts = await here.facts()
    assert list(facts) == ["My dog is called Rex."], "what was shown, and repeated, is no new evidence"
    [id] = facts.values()
    await here.running.bus.call(MEMORY_FORGET, ForgetChunk(id=id, actor="owner", block=here.block))
    assert "Rex" not in await here.sent("What is the name of my dog now?")


async def test_the_owner_s_budget_limits_the_facts_shown(here: Harness) -> None:
    """``max_tokens`` is the limit for all learned items together; 0 shows none, and learning continues."""
    for number in range(4):
        await here.tell(f"I prefer the number {number} over every other number when I paint walls at home.")
    whole = await here.sent("Which number do I prefer?")
    assert whole.count("I prefer the number") >= 3
    await here.prefer(f"{ON}max_tokens = 60\n")
    await until(lambda: reported(here, 1))
    await here.prefer(f"{ON}max_tokens = 0\n")
    await until(lambda: reported(here, 0))
    assert len(await here.facts()) == 4


async def reported(here: Harness, count: int) -> bool:
    """Report whether the given number of facts is shown now: preferences apply from the next turn."""
    return (await here.sent("Which number do I prefer?")).count("I prefer the number") == count


async def test_facts_reach_no_other_block_and_no_other_person(here: Harness) -> None:
    """The owner's facts of one block are shown neither in another block nor to a guest of the same block, and the
    guest's facts are not shown to the owner. The same holds for strategies that quote them, for tasks, and for the
    owner's profile."""
    await here.running.gateway.create_block(other := new_id().lower())
    await here.tell("The launch code is in the blue folder. I have 2 launch codes.")
    await here.tell(
        'call:write_file {"path": "launch.txt", "content": "x"} ;; say:Wrote the launch code file.'
    )
    conversation = (await here.running.say("say:ok")).accepted.conversation
    await here.tell("Thanks, perfect!", conversation=conversation)
    before = here.learned
    assert "launch" not in await here.guest("I have 3 launch codes.")
    await until(lambda: here.learned > before)
    question = "Write the launch code file: how many launch codes do I have?"
    assert "launch" not in await here.sent(question, block=other)
    guest = await here.guest(question)
    assert "I have 3 launch codes." in guest and "2 launch codes" not in guest
    assert "worked for" not in guest and "Wrote the launch" not in guest
    owner = await here.sent(question)
    assert "I have 2 launch codes." in owner and "3 launch codes" not in owner


async def test_no_memory_tool_shows_a_fact_to_another_person_or_block(here: Harness) -> None:
    """ADR 44 holds for a model's own lookups: searching, recalling, listing, reading a chunk's file in its current
    or an earlier version, its history and its lines. The person concerned finds it in its block, and the owner's own
    search finds everything."""
    await here.running.gateway.create_block(garden := new_id().lower())
    await here.tell("I live in Gardenia with Wolfgang.", block=garden)
    await here.tell("I live in Lisbon with Zebulon.")
    [learned] = (await here.facts()).items()
    chunk = await here.running.bus.call(
        MEMORY_CHUNK, GetChunk(id=learned[1], actor="owner", block=here.block)
    )
    assert chunk.chunk is not None
    path = f"/{chunk.chunk.path}"
    versions = await here.running.bus.call(MEMORY_HISTORY, MemoryHistory(path=path[1:]))

    async def found(call: str, name: str, who: str = "", block: str = "") -> bool:
        return f"I live in {name}" in await here.looked_up(call, who, block)

    look = 'memory_search {"query": "live in Lisbon Gardenia", "kinds": ["fact"]}'
    ways = (
        look,
        'memory_search {"query": "live in Lisbon", "kinds": ["fact", "chunk", "file"], "limit": 1}',
        'recall {"query": "live in Lisbon Zebulon"}',
        'known_facts {"query": "live in Lisbon Zebulon"}',
        f'memory_read {{"path": "{path}"}}',
        f'memory_read {{"path": "{path}", "commit": "{versions.changes[0].version}"}}',
        f'memory_blame {{"path": "{path}"}}',
    )
    for way in ways:
        assert await found(way, "Lisbon"), way
        assert not await found(way, "Lisbon", GUEST.id), way
    for way in (look, *ways[4:]):
        assert not await found(way, "Lisbon", block=garden), way
    assert await found(look, "Gardenia", block=garden)
    assert not await found(look, "Gardenia")
    await here.running.bus.call(MEMORY_FORGET, ForgetChunk(id=learned[1], actor="owner", block=here.block))
    for way in (ways[5], f'memory_history {{"path": "{path}"}}'):
        assert await found(way, "Lisbon"), way
        assert not await found(way, "Lisbon", GUEST.id), way
    hits = (await here.running.bus.call(MEMORY_SEARCH, SearchMemory(query="live in Gardenia"))).hits
    assert any(hit.kind == "fact" and "Wolfgang" in hit.content for hit in hits)


async def test_learned_tasks_strategies_and_profile_stay_in_their_block(tmp_path: Path) -> None:
    """Files of ``models/`` are found and read in the blocks of their sources. Strategies without a source are
    readable by all people and blocks; the profile and damaged files only by the owner."""
    at = {"block": "garden", "conversation": "c", "turn": "t"}
    files: dict[str, object] = {
        "models/m/episodes/2026-05-01/ep-1.json": {"task": "prune the wisteria", "source": at},
        "models/m/playbook/s-1.json": {"text": "prune the wisteria", "source": "model", "sources": [at]},
        "models/m/playbook/s-2.json": {"text": "prune the wisteria", "source": "person", "sources": [at]},
        "models/m/playbook/s-3.json": "prune the wisteria",
        "profile.json": {"text": "prune the wisteria"},
    }
    reported = {"": [2, 3, 4], "garden": [0, 1, 2, 3, 4], GUEST.id: [2]}
    reader = Identity(id=GUEST.id, permissions=("memory:*", "tools:*"))
    async with started(tmp_path / "home", reader) as (running, provider):
        here = Harness(BlockClient(running, "main"), provider)
        await here.running.gateway.create_block("garden")
        for path, value in files.items():
            file = here.running.home.memory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(value))
        look = 'memory_search {"query": "wisteria", "path": "/models", "kinds": ["file"]}'
        with anyio.fail_after(30):  # files written by hand are found once they have come to rest
            while "s-3.json" not in await here.looked_up(look, "", "main"):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        for who, shown in reported.items():
            guest, block = (GUEST.id, "main") if who == GUEST.id else ("", who or "main")
            for number, path in enumerate(files):
                text = await here.looked_up(f'memory_read {{"path": "/{path}"}}', guest, block)
                assert ("wisteria" in text) is (number in shown), (who, path)
            text = await here.looked_up(look, guest, block)
            found = [number for number, path in enumerate(files) if path in text]
            assert found == [number for number in shown if number != 4], who


async def test_chunks_written_by_an_agent_are_not_learned_facts(here: Harness) -> None:
    """Only a fact that the learner extracted from a person's words is shown as learned."""
    request = Remember(content="Rex is a cat.", actor="tools", conversation_id="c", block=here.block)
    await here.running.bus.call(MEMORY_REMEMBER, request)
    assert "Rex" not in await here.sent("What is Rex?")


async def test_a_block_without_learning_receives_no_facts(here: Harness) -> None:
    """RLM-F21: a block whose policy disables memory has no facts in the model's request."""
    await here.tell("I live in Lisbon.")
    folder = here.running.home.memory / "blocks" / here.block
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "block.toml").write_text("[memory]\nenabled = false\n")

    async def silent() -> bool:
        return "Lisbon" not in await here.sent("Where do I live?")

    await until(silent)


async def test_mn_f23_the_heuristic_reflector_recognizes_platform_errors(here: Harness) -> None:
    """MN-F23: each real error of a tool becomes a pitfall of its own kind and is counted under it."""
    calls = {
        "file_not_found": 'read_file {"path": "absent.txt"}',
        "string_not_found": 'replace_in_file {"path": "a.txt", "find": "absent", "replace": "x"}',
        "invalid_arguments": 'write_file {"path": "a.txt"}',
        "permission_denied": 'read_file {"path": "../../../etc/passwd"}',
        "conflict": 'copy_file {"source": "a.txt", "target": "b.txt"}',
    }
    workspace = here.running.home.workspace(here.block)
    workspace.mkdir(parents=True, exist_ok=True)
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text("a note")
    models = here.running.home.memory / "models"
    for kind, call in calls.items():
        await here.tell(f"call:{call} ;; say:Hm.")
        pitfalls = [json.loads(path.read_text())["context"] for path in models.glob("*/playbook/pit-*.json")]
        assert f"{call.split()[0]}: {kind.replace('_', ' ')}" in pitfalls
    [numbers] = [json.loads(path.read_text()) for path in models.glob("*/metrics.json")]
    assert numbers["failure_types"] == dict.fromkeys(calls, 1)
