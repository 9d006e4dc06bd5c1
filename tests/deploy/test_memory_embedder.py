"""Memory under its own NATS user asks a vendor for vectors: redacted, within a budget, and with nothing denied."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.costs.subjects import BUDGET_EVENT, COST
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.index import GetIndexStats, VectorStats
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_WRITE_MANY
from trunkline.testing.scripted_provider import ScriptedProvider

from .installation import Installation, installation

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

CUSTOMER = "KD-123456"
EMBEDDER = "openai/text-embedding-3-small"


async def test_memory_may_do_what_budget_and_redaction_need(tmp_path: Path) -> None:
    """No monitor runs. The vendor reads placeholders; the request is in the ledger; when the budget is used up, the
    owner is told and the vendor is not asked. A restarted process has the same key of placeholders.
    """
    with ScriptedProvider() as provider:
        settings = {
            **provider.settings,
            "memory.embedder": EMBEDDER,
            "models.prices": {EMBEDDER: {"input": 1.0, "output": 0.0}},
            "plugins.redaction": {"enabled": True, "patterns": {"customer": "KD-[0-9]{6}"}},
            "plugins.budget.max_daily_spend": 0.000_1,
        }
        async with installation(tmp_path, settings=settings, workers=("memory",)) as running:
            await write(running, "one.md", f"{CUSTOMER} naps")
            await until(running, lambda stats: bool(stats.ready) and not stats.missing)
            running.processes["memory"].kill()
            await running.launch("memory", "memory").ready()
            await write(running, "two.md", f"{CUSTOMER} wakes " * 100)  # more than the budget
            await until(running, lambda stats: stats.ready > 1 and not stats.missing)
            asked = len(provider.answer_requests)
            await write(running, "three.md", "nothing is left")
            await until(running, lambda stats: "over_budget" in stats.fault)
            assert len(provider.answer_requests) == asked
            assert len([one async for one in running.bus.history(COST)]) == asked
            (event,) = [one.data async for one in running.bus.history(BUDGET_EVENT)]
            assert event.event == "bankrupt"
            assert running.denied() == []
        sent = "".join(json.dumps(request.body) for request in provider.answer_requests)
    assert CUSTOMER not in sent
    assert len({sent[at : at + 21] for at in range(len(sent)) if sent.startswith("CUSTOMER_", at)}) == 1


async def write(running: Installation, path: str, text: str) -> None:
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={path: text}, actor="owner"))


async def until(running: Installation, due: Callable[[VectorStats], bool]) -> None:
    """Wait for a state of the vectors."""
    with anyio.fail_after(90):
        while True:
            stats = (await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())).vectors
            if stats is not None and due(stats):
                return
            await anyio.sleep(0.1)
