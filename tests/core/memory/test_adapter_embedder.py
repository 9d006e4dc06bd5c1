"""A model adapter as memory's embedder: its requests are in the cost ledger, pass middleware, and end with panic."""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

import trunkline
from trunkline import Message
from trunkline.api.costs import BUDGET_EVENT
from trunkline.api.model import AskModel, ModelEvent, ModelMiddleware, ModelRequest
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.index import GetIndexStats, VectorStats
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH, MEMORY_WRITE
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_budget.settings import BudgetSettings
from trunkline_budget.state import reset_budgets

pytestmark = pytest.mark.anyio

CONFIG = {
    "memory.embedder": "scripted/scripted-embed",
    "models.prices": {"scripted/scripted-embed": {"input": 2.0, "output": 0.0}},
}


class Plugin:
    """A scripted model."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ScriptedModel]:
        return [self.model]


async def test_each_request_for_vectors_is_in_the_ledger(tmp_path: Path) -> None:
    """Memory runs alone. Each request has one entry with its cost, nothing stays open, and the files of the ledger
    itself are not embedded: otherwise each entry would be the reason for the next one.
    """
    plugin = Plugin()
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=CONFIG) as running:
        await _write(running, "pet.md", "The kitten naps")
        with anyio.fail_after(30):
            while not list((tmp_path / "memory/costs").glob("*.jsonl")):  # noqa: ASYNC110 - it is written in batches
                await anyio.sleep(0.05)
        await _write(running, "money.md", "Shares fell again")
        entries = [stored.data async for stored in running.bus.history(COST)]
        with anyio.fail_after(10):
            while [one async for one in running.bus.history(OPENED_REQUEST)]:  # noqa: ASYNC110 - deleted in the background
                await anyio.sleep(0.05)
    asked = [" ".join(texts) for texts in plugin.model.ability_requests]
    assert {(one.adapter, one.requested, one.purpose, one.operation) for one in entries} == {
        ("scripted", "scripted-embed", "embed", "embeddings")
    }
    assert {(one.actor, one.status, one.price) for one in entries} == {
        ("memory", "finished", "trunkline.toml 2/2/0")
    }
    assert [one.cost for one in entries] == [2 * len(text.split()) for text in asked]
    assert not [text for text in asked if "embeddings" in text]


async def test_panic_ends_requests_for_vectors(tmp_path: Path) -> None:
    """While the kill switch is engaged no text is sent, and search uses words."""
    plugin = Plugin()
    KillSwitch(tmp_path).engage("owner")
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=CONFIG) as running:
        await running.bus.call(
            MEMORY_WRITE, WriteMemory(path="pet.md", content="The kitten naps", actor="owner")
        )
        with anyio.fail_after(30):
            while "panic" not in (await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())).vectors.fault:  # noqa: ASYNC110
                await anyio.sleep(0.05)
    assert plugin.model.ability_requests == []


async def _write(running: Platform, path: str, text: str) -> None:
    """Write a file, and wait for its vectors."""
    await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))
    with anyio.fail_after(30):
        while True:
            stats = await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())
            if stats.vectors and not stats.vectors.missing:
                return
            await anyio.sleep(0.05)


async def test_a_spent_budget_refuses_vectors_and_loses_none(tmp_path: Path) -> None:
    """The vendor is not asked any more, and the owner is told once. Files are still written, and words find them. When
    the budget opens again, what waited gets its vector. Memory runs alone.
    """
    plugin, limit = Plugin(), 0.000_2
    prices = {"scripted/scripted-embed": {"input": 20.0, "output": 0.0}}
    config = {**CONFIG, "models.prices": prices, "plugins.budget.max_daily_spend": limit}
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=config) as running:
        await _write(running, "pet.md", "The kitten naps")  # 80 micro-USD of 200
        await _write(running, "pets.md", "The kitten naps " * 10)  # 600 more: what is begun is finished
        asked = len(plugin.model.ability_requests)
        write = WriteMemory(path="money.md", content="Shares fell again", actor="owner")
        await running.bus.call(MEMORY_WRITE, write)
        await _until(running, lambda stats: "over_budget" in stats.fault)
        found = await running.bus.call(MEMORY_SEARCH, SearchMemory(query="shares"))
        assert [hit.path for hit in found.hits] == ["money.md"]
        assert len(plugin.model.ability_requests) == asked
        events = [stored.data async for stored in running.bus.history(BUDGET_EVENT)]
        assert [(one.event, one.block, one.limit) for one in events] == [("bankrupt", "", 200)]
        await reset_budgets(running.bus, BudgetSettings(max_daily_spend=limit), "", "owner")
        await _until(running, lambda stats: not stats.missing and not stats.fault)
    assert any(
        "Shares fell again" in text for texts in plugin.model.ability_requests[asked:] for text in texts
    )


class Middleware(Plugin):
    """A scripted model, and middleware around requests that changes the texts for the vendor."""

    each_request = True

    def __init__(self, change: Callable[[tuple[Message, ...]], tuple[Message, ...]]) -> None:
        super().__init__()
        self._change = change

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Sequence[ModelMiddleware]:
        return [self]

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        assert (request.operation, request.purpose) == ("embeddings", "embed")
        async for event in proceed(replace(request, messages=self._change(request.messages))):
            yield event


async def test_middleware_changes_what_the_vendor_reads(tmp_path: Path) -> None:
    """The vendor gets the texts that the middleware leaves, and search works with them."""
    plugin = Middleware(lambda said: tuple(replace(one, content=one.content.upper()) for one in said))
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=CONFIG) as running:
        await _write(running, "pet.md", "The kitten naps")
        await running.bus.call(MEMORY_SEARCH, SearchMemory(query="kitten"))
    asked = [text for texts in plugin.model.ability_requests for text in texts]
    assert "KITTEN" in asked and any("THE KITTEN NAPS" in text for text in asked)
    assert [text for text in asked if text != text.upper()] == []


async def test_middleware_that_drops_a_text_gets_no_vectors(tmp_path: Path) -> None:
    """Else vectors would belong to other texts."""
    plugin = Middleware(lambda said: said[1:])
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=CONFIG) as running:
        write = WriteMemory(path="pet.md", content="The kitten naps", actor="owner")
        await running.bus.call(MEMORY_WRITE, write)
        await _until(running, lambda stats: "number of the texts" in stats.fault)
    assert plugin.model.ability_requests == []


async def test_a_broken_guard_of_models_refuses_vectors(tmp_path: Path) -> None:
    """It may have been the one that keeps secrets from the vendor."""

    class Broken(Plugin):
        @trunkline.hookimpl
        def trunkline_model_middleware(self) -> Sequence[ModelMiddleware]:
            raise RuntimeError("no device")

    plugin = Broken()
    async with platform(tmp_path, plugins=[plugin], workers=("memory",), config=CONFIG) as running:
        write = WriteMemory(path="pet.md", content="The kitten naps", actor="owner")
        await running.bus.call(MEMORY_WRITE, write)
        await _until(running, lambda stats: "is broken" in stats.fault)
    assert plugin.model.ability_requests == []


async def _until(running: Platform, due: Callable[[VectorStats], bool]) -> None:
    """Wait for a state of the vectors."""
    with anyio.fail_after(60):
        while True:
            stats = (await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())).vectors
            if stats is not None and due(stats):
                return
            await anyio.sleep(0.05)
