"""Monitors that come and go under many conversations: the work is shared out, and nothing is lost over it."""

import signal
from pathlib import Path

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import provider_process

from .concurrent_conversations import PEOPLE, ConcurrentConversations
from .invariants import Verdict, journal_verdict, verdict
from .partition_assignment import settled

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


@pytest.mark.timeout(600)  # five times shares settle, each within the time that a busy machine may need
async def test_partitions_are_balanced_as_monitors_join_and_leave(tmp_path: Path) -> None:
    """Each monitor has its share soon after one joins, is drained, or is killed. All the while messages are answered
    once and in order, never two of a conversation at once, and no model call is repeated for a turn that merely
    moved."""
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
            "monitor.concurrency": PEOPLE // 2,
        }
        kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "tools")
        async with process_platform(tmp_path, config=config, workers=kinds) as running:
            conversations = ConcurrentConversations(running, PEOPLE, lambda _: "wait:1.5")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversations.talk)
                peaceful = await come_and_go(running, conversations)
                conversations.stopping = True
            after = await verdict(running, conversations)
    assert not after.broken
    assert peaceful.again == 0 and peaceful.changed == 0
    assert after.turns >= PEOPLE


async def come_and_go(running: ProcessPlatform, conversations: ConcurrentConversations) -> Verdict:
    """Two join, one leaves, one is killed. Returns how it stood before the kill."""
    first = await running.start("monitor", "monitor-1")
    await settled(running, lambda found: found == {first.pid: 8})
    second = await running.start("monitor", "monitor-2")
    await settled(running, lambda found: found == {first.pid: 4, second.pid: 4})
    third = await running.start("monitor", "monitor-3")
    await settled(running, lambda found: sorted(found.values()) == [2, 3, 3])
    second.kill(signal.SIGTERM)
    assert await second.gone() == 0
    await settled(running, lambda found: found == {first.pid: 4, third.pid: 4})
    peaceful = await journal_verdict(running, conversations)
    third.kill()
    await settled(running, lambda found: found == {first.pid: 8})
    return peaceful
