"""Hosts whose clocks differ by minutes. Each worker runs under libfaketime, where that is installed."""

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline.testing.scripted_provider import provider_process

from .concurrent_conversations import PEOPLE, ConcurrentConversations
from .invariants import verdict
from .partition_assignment import settled

LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kill,
    pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed (Debian: faketime)"),
]

CLOCKS: Mapping[str, tuple[WorkerKind, str]] = {
    "gateway": ("gateway", "+7m"),
    "memory": ("memory", "-8m"),
    "tools": ("tools", "+11m"),
    "fast": ("monitor", "+5m"),
    "slow": ("monitor", "-6m"),
}


def clock(offset: str) -> dict[str, str]:
    """Return a setting that shifts the clock of a process."""
    return {"LD_PRELOAD": str(LIBRARY), "FAKETIME": offset}


async def test_no_worker_depends_on_another_workers_clock(tmp_path: Path) -> None:
    """The monitors share the partitions, a killed one is replaced, every message is answered once and in order, each
    turn has one trace, and an observer with a wrong clock is shown correct ages and counts."""
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
        }
        async with process_platform(tmp_path, config=config, workers=()) as running:
            async with anyio.create_task_group() as starting:
                for name, (kind, offset) in CLOCKS.items():
                    starting.start_soon(partial(running.start, kind, name, **clock(offset)))
            conversations = ConcurrentConversations(running, PEOPLE, lambda _: "wait:1.5")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversations.talk)
                await settled(running, lambda found: list(found.values()) == [4, 4])
                with anyio.fail_after(60):
                    while not (seen := await top(running, "+20m"))["lately"]["finished"]:
                        pass  # none has ended yet
                running.kill("fast")
                await settled(running, lambda found: list(found.values()) == [8])
                replaced = anyio.current_time()
                conversations.stopping = True
            after = await verdict(running, conversations)
            survived = {said.accepted.turn for said in conversations.everything if said.end > replaced}
            traces = await traces_of(running, survived)
    assert not after.broken
    assert all(0 <= (one["oldest"] or 0) < 120 for one in seen["partitions"])
    assert survived and all(len(found) == 1 for found in traces.values())
    assert len(traces) > len(survived), "turns that ended before the kill are traced too"


async def top(running: ProcessPlatform, offset: str) -> Any:
    """Return the view of an operator with a wrong clock."""
    command = [sys.executable, "-m", "trunkline.cli.main", "top", "--once", "--json"]
    environ = {**running.environ, **clock(offset)}
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    )
    return json.loads(done.stdout)


async def traces_of(running: ProcessPlatform, wanted: set[str]) -> dict[str, set[str]]:
    """The traces of each turn, as soon as those of all ``wanted`` are there. A killed monitor takes the spans of its
    last moments with it, so not every turn is wanted."""
    found: dict[str, set[str]] = {}
    with anyio.fail_after(60):
        while not wanted <= found.keys() or not found:
            await anyio.sleep(0.2)
            async for batch in running.bus.history(SPANS):
                for span in batch.data.spans:
                    if turn := span.attributes.get(semconv.TURN):
                        found.setdefault(turn, set()).add(span.trace_id)
    return found
