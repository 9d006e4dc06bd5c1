"""A monitor that was suspended while another took its conversations over: its items must not be stuck."""

import signal
from collections.abc import AsyncIterator

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.subjects import INBOX
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.testing.worker_process import WorkerProcess

from .approval_helpers import asking, decide, question_of, write
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("stale")
    async with process_platform(home, config=asking(provider), workers=ALL_WORKERS) as running:
        yield running


async def inbox(running: ProcessPlatform, accepted: MessageAccepted) -> list[str]:
    """The turns that the inbox has items of, in this conversation."""
    keys = {"conversation": accepted.conversation}
    return [one.data.turn async for one in running.bus.history(INBOX, after=0, **keys)]


async def holders(running: ProcessPlatform, accepted: MessageAccepted) -> tuple[WorkerProcess, WorkerProcess]:
    """Return the monitor that receives the conversation's messages and the other one, once that is settled."""
    keys = {"conversation": accepted.conversation}
    (partition,) = {int(one.keys["partition"]) async for one in running.bus.history(INBOX, after=0, **keys)}
    monitors = {process.pid: process for process in running.processes.values() if process.kind == "monitor"}
    with anyio.fail_after(60):
        while True:
            await anyio.sleep(5)  # longer than partitions take to move to a monitor that has just come
            beats = [entry.value for entry in await running.bus.kv(WORKER_BUCKET).entries() if entry.value]
            having = [beat.pid for beat in beats if beat.pid in monitors and partition in beat.pins]
            if len(having) == 1:
                holder = monitors.pop(having[0])
                return holder, monitors.popitem()[1]


async def streams(running: ProcessPlatform, accepted: MessageAccepted) -> None:
    """Wait until its answer streams."""
    with anyio.fail_after(60):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta) and "word-3" in event.text:
                return


async def test_turns_of_a_suspended_monitor_are_taken_over(module_platform: ProcessPlatform) -> None:
    """b waits for a person and c for b. The monitor that has both is suspended; another takes over, ends b, and is
    killed while it answers c. The first one, which still has c, must notice this and answer it."""
    async with shared_platform(module_platform) as running:
        await running.start("monitor", "second")
        b = await running.send(write("stale.md"))
        asked = await question_of(running, b)
        c = await running.send("slow:100:50", conversation=b.conversation)
        holder, other = await holders(running, c)
        holder.kill(signal.SIGSTOP)
        try:
            await anyio.sleep(3)
            await decide(running.gateway, asked, True)
            await running.answer(b)
        finally:
            holder.kill(signal.SIGCONT)
        await streams(running, c)
        await anyio.sleep(2)  # so that the first one says again that it holds c
        other.kill()
        answer = await running.answer(c)
        assert answer.ended.code is None
        with anyio.fail_after(30):
            while await inbox(running, c):  # noqa: ASYNC110 - asked over the bus
                await anyio.sleep(0.1)
