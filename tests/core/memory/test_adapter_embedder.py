"""A model adapter as memory's embedder: its requests are in the cost ledger, and end with panic."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_WRITE
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

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
