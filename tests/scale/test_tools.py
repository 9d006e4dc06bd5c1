"""Several tools workers receive calls in turn; one that is killed during calls affects no other's."""

from pathlib import Path

import anyio
import pytest

from tests.support.processes import process_platform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import provider_process

from .concurrent_conversations import ConcurrentConversations
from .effect_tool import PLUGIN, job, job_counts, runners
from .invariants import verdict

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


async def test_tools_workers_share_the_calls_and_survive_each_other(tmp_path: Path) -> None:
    """All three run calls. One is killed in the middle of some: these are reported as unknown, none is run twice, and
    every message is answered."""
    file = tmp_path / "job_counts"
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
            "monitor.tool_idle_timeout": 2.5,
        }
        kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "monitor", "tools")
        async with process_platform(
            tmp_path, config=config, plugins={"job": PLUGIN}, workers=kinds
        ) as running:
            async with anyio.create_task_group() as starting:
                for name in ("tools-2", "tools-3"):
                    starting.start_soon(running.start, "tools", name)
            victim = running.processes["tools-2"]
            conversations = ConcurrentConversations(running, 12, lambda mark: job(file, mark, 0.5))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversations.talk)
                with anyio.fail_after(60):
                    while len(runners(file)) < 3 or runners(file)[victim.pid] < 2:  # noqa: ASYNC110 - a file
                        await anyio.sleep(0.02)
                victim.kill()
                killed = runners(file).total()
                with anyio.fail_after(60):
                    while runners(file).total() < killed + 12:  # noqa: ASYNC110 - a file
                        await anyio.sleep(0.05)
                conversations.stopping = True
            after, ran = await verdict(running, conversations), await job_counts(running, file)
    assert not after.broken and not ran.broken
    assert all("unknown" in reported for reported in ran.unknown), ran.unknown
