"""Text returned by memory is no evidence of itself: agents repeat the same searches, and no search finds its own
results, or the question that was asked (decision 50)."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline import ToolCall
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.api.model import Call, ModelAdapter, ModelRequest
from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.memory.export_transfer import export_memory
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.import_transfer import import_memory
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.search import MemoryHit, SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH, MEMORY_WRITE_MANY
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

NOTES = {
    "documents/cellar.md": "# Cellar\n\nThe blue folder with the tax papers lies in the cellar, beside the skis.\n",
    "documents/trip.md": "# Trip\n\nThe ferry to Norderney leaves at nine.\n",
}
QUESTION = "Hi! Where did I put the blue folder?"
ANSWER = "It lies in the cellar, beside the skis."


class Harness:
    """A model that calls one tool for each question and then answers, and tools that bring something of their own."""

    def __init__(self, call: str = "memory_search", **arguments: Any) -> None:
        self.call, self.arguments = call, arguments or {"query": "blue folder"}
        self.count = 0
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: ModelRequest) -> Any:
        if request.messages[-1].role == "tool":
            return ANSWER
        self.count += 1
        return [Call(ToolCall(id=f"call_{self.count}", name=self.call, arguments=self.arguments))]

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[Any]:
        @trunkline.tool(effect="read", untrusted_output=True)
        def fetch_letter(pages: int = 1) -> str:
            """Fetch a letter."""
            return (
                "Dear Ada, the plumber comes on Friday.\n"
                + "Nothing else.\n" * 3_000 * (pages - 1)
                + "Yours, Zoe"
            )

        return [fetch_letter]


@asynccontextmanager
async def at(
    harness: Harness | None = None, *, home: Path | None = None, embedder: str = ""
) -> AsyncIterator[Platform]:
    config = {"runtime.provider_adapter": "scripted" if harness else "offline", "memory.embedder": embedder}
    async with platform(home, plugins=[harness] if harness else [], config=config) as running:
        request = WriteManyMemory(files=NOTES, actor="owner")
        await running.bus.call(MEMORY_WRITE_MANY, request)
        await embedded(running)
        yield running


async def embedded(running: Platform) -> None:
    """Wait until everything has its vector, where there is an embedder."""
    with anyio.fail_after(60):
        while (  # noqa: ASYNC110  memory tells it to whoever asks
            vectors := (await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())).vectors
        ) and vectors.missing:
            await anyio.sleep(0.05)


async def messages(running: Platform, conversation: str) -> tuple[Message, ...]:
    request = LoadConversation(block="main", conversation=conversation)
    return (await running.bus.call(LOAD_MESSAGES, request)).messages


async def found_by(running: Platform, answer: TurnAnswer) -> list[dict[str, Any]]:
    """The hits of the last search of memory that a conversation holds."""
    stored = await messages(running, answer.accepted.conversation)
    result = next(one for one in reversed(stored) if one.role == "tool")
    hits: list[dict[str, Any]] = json.loads(unwrap_tool_result(result.content))["hits"]
    return hits


async def search(running: Platform, query: str, **narrowed: Any) -> tuple[MemoryHit, ...]:
    request = SearchMemory(query=query, **narrowed)
    return (await running.bus.call(MEMORY_SEARCH, request)).hits


def said(hits: Sequence[MemoryHit]) -> set[str]:
    return {hit.content for hit in hits}


@pytest.mark.parametrize("embedder", ["", "static"])
async def test_no_search_returns_its_own_results_or_its_question(embedder: str) -> None:
    """Asked three times in one conversation and in others, an agent finds the note and its own answer only."""
    async with at(Harness(), embedder=embedder) as running:
        first = await running.say(QUESTION)
        here = {"conversation": first.accepted.conversation}
        for more in ({}, here, here, {}, {}):
            await embedded(running)
            answer = await running.say(QUESTION, **more)
            hits = await found_by(running, answer)
            assert hits[0]["path"] == "/documents/cellar.md"
            talk = [hit for hit in hits if hit["kind"] == "turn"]
            assert {hit["content"] for hit in talk} <= {ANSWER}, talk
        for query in ("blue folder", QUESTION, "searched words alone", "cellar.md"):
            assert all(
                "blue folder?" not in text and "hits" not in text
                for text in said(await search(running, query))
            )
        asked = await search(running, "blue folder", kinds=("turn",))
        assert {hit.speaker for hit in asked} == {"user"}  # whoever names kinds finds questions too


async def test_statements_beside_a_question_are_kept() -> None:
    """A statement is evidence, also in a turn that searched memory; a question that no search was made for stays."""
    async with at(Harness()) as running:
        reported = "I moved the blue folder to the attic yesterday. Where was it before?"
        await running.say(reported)
        assert reported in said(await search(running, "blue folder attic"))
    async with at(Harness("fetch_letter", pages=1)) as running:
        await running.say("When does the plumber come?")
        found = said(await search(running, "plumber"))
        assert "When does the plumber come?" in found and any("comes on Friday" in text for text in found)


async def test_a_question_does_not_affect_its_neighbours_ranking() -> None:
    """A message beside a question is found by its own words alone; otherwise each answer would also have the words
    of the question."""
    async with at(Harness()) as running:
        first = await running.say("The weather is fine today.")
        await running.say(QUESTION, conversation=first.accepted.conversation)
        found = said(await search(running, "blue folder"))
        assert found == {"The blue folder with the tax papers lies in the cellar, beside the skis."}


@pytest.mark.parametrize("embedder", ["", "static"])
async def test_answers_that_list_hits_are_not_hits(embedder: str) -> None:
    """Without a model, these are the report of a search, the output of a tool that a person ran, and the command
    itself."""
    async with at(embedder=embedder) as running:
        for text in (
            "Where is the blue folder?",
            "/tool memory_search query=folder",
            "/tool memory_read path=/AGENT.md",
        ):
            conversation = {}
            for _ in range(3):
                answer = await running.say(text, **conversation)
                conversation = {"conversation": answer.accepted.conversation}
        assert "> " in (await running.say("Where is the blue folder?")).text
        await embedded(running)
        for query in ("blue folder", "memory_search", "Where is the blue folder", "In memory I found"):
            assert [hit for hit in await search(running, query) if hit.kind == "turn"] == []


async def test_symbols_are_matched_literally_and_not_in_questions() -> None:
    """Signs are looked for in the text as it stands: neither the call that looked for them nor its question holds
    them, and a message that does is shown as it reads."""
    harness = Harness(query='"=>"')
    async with at(harness) as running:
        await running.say('What does "=>" mean?')
        assert await search(running, '"=>"') == ()
        harness.call, harness.arguments = "fetch_letter", {}
        await running.say('I always write "=>" for leads to.')
        assert said(await search(running, '"=>"')) == {'I always write "=>" for leads to.'}


async def test_parts_of_a_long_result_inherit_its_derivation() -> None:
    """``read_result`` reads on in what memory gave, which is not found, and in a letter, which is."""
    lines = "".join(f"Line {number} speaks of rhubarb.\n" for number in range(5_000))
    harness = Harness("memory_read", path="/documents/long.md")
    async with at(harness) as running:
        request = WriteManyMemory(files={"documents/long.md": lines}, actor="owner")
        await running.bus.call(MEMORY_WRITE_MANY, request)
        for pattern, derived in (("rhubarb", True), ("plumber", False)):
            answer = await running.say("Read it, please.")
            stored = await messages(running, answer.accepted.conversation)
            text = next(one.content for one in stored if one.role == "tool")
            harness.call = "read_result"
            harness.arguments = {"id": text.partition('with id="')[2].partition('"')[0], "pattern": pattern}
            await running.say("Go on.", conversation=answer.accepted.conversation)
            stored = await messages(running, answer.accepted.conversation)
            assert [one.derived for one in stored if one.role == "tool"] == [derived, derived]
            assert pattern in [one for one in stored if one.role == "tool"][-1].content
            harness.call, harness.arguments = "fetch_letter", {"pages": 20}
        assert {hit.kind for hit in await search(running, "rhubarb")} == {"document"}
        assert {hit.speaker for hit in await search(running, "plumber")} == {"fetch_letter", "read_result"}


async def test_the_record_travels_with_memory(tmp_path: Path) -> None:
    """After an export and an import elsewhere, results of searches are still marked as such."""
    async with at(Harness(), home=tmp_path / "one") as running:
        for _ in range(3):
            await running.say(QUESTION)
        await export_memory(running.bus, tmp_path / "all.tar", timeout=60)
    async with platform(tmp_path / "two") as other:
        await import_memory(other.bus, tmp_path / "all.tar", actor="owner")
        hits = await search(other, "blue folder")
        assert "documents/cellar.md" in {hit.path for hit in hits}
        assert said([hit for hit in hits if hit.kind == "turn"]) <= {ANSWER}
