"""The number of partitions changed while people talk: nothing is lost and nothing changes its order."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import provider_process

from .concurrent_conversations import PEOPLE, ConcurrentConversations
from .invariants import verdict
from .partition_assignment import settled

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


async def test_the_number_of_partitions_changes_under_load(tmp_path: Path) -> None:
    """With a live monitor the command is refused; without one, waiting items are moved, and restarted monitors share
    the new partitions. Every accepted message is answered once and in order."""
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
        }
        kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "monitor", "tools")
        async with process_platform(tmp_path, config=config, workers=kinds) as running:
            conversations = ConcurrentConversations(running, PEOPLE, lambda _: "wait:1.5")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversations.talk)
                await settled(running, lambda found: list(found.values()) == [8])
                refused = await trunkline(running, "partitions", "4")
                assert refused.returncode == 1 and "Stop all monitors" in refused.stderr
                await dealt_into(running, 12)
                await dealt_into(running, 4)
                conversations.stopping = True
            after = await verdict(running, conversations)
    assert not after.broken
    assert after.again == 0


async def dealt_into(running: ProcessPlatform, number: int) -> None:
    """Stop the monitor, deal, and start it again."""
    running.kill("monitor", signal.SIGTERM)
    assert await running.processes["monitor"].gone() == 0
    done = await trunkline(running, "partitions", str(number))
    assert done.returncode == 0 and f"The inbox now has {number} partitions" in done.stdout, done.stderr
    await running.restart("monitor")
    # Of twelve, some have no conversation.
    await settled(running, lambda found: len(found) == 1 and number * 0.6 < sum(found.values()) <= number)


async def trunkline(running: ProcessPlatform, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program as an operator would."""
    command = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    return await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            command, env=dict(running.environ), capture_output=True, text=True, timeout=60, check=False
        )
    )
