"""The lease of an account: one process at a time, on a real bus."""

from pathlib import Path

import anyio
import pytest

from tests.support.buses import bus_at
from trunkline.api.channel import AccountLease, LeaseHolder, LeaseLost, RecordChanged
from trunkline.api.testing import ScriptedRecords
from trunkline.contracts.channels.records_client import BusChannelRecords
from trunkline.contracts.conversations.messages import utc_now
from trunkline.errors import Unavailable
from trunkline.testing.channel_suite import wait_until

pytestmark = pytest.mark.anyio


async def test_the_second_process_waits_for_the_first(tmp_path: Path) -> None:
    """The second one is told who holds the lease, and runs as soon as the first one ends."""
    async with bus_at(tmp_path) as bus:
        records = BusChannelRecords(bus, "telegram")
        running: list[str] = []
        told: list[LeaseHolder] = []
        first_ends, second_runs = anyio.Event(), anyio.Event()

        async def first() -> None:
            running.append("first")
            await first_ends.wait()
            running.remove("first")

        async def second() -> None:
            assert running == []
            second_runs.set()

        async def waiting(holder: LeaseHolder) -> None:
            told.append(holder)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(AccountLease(records, "bot", seconds=2).run, first)
            await wait_until(lambda: running)
            tasks.start_soon(lambda: AccountLease(records, "bot", seconds=2).run(second, waiting=waiting))
            await wait_until(lambda: told)
            await anyio.sleep(2.5)
            assert not second_runs.is_set()
            first_ends.set()
            with anyio.fail_after(5):
                await second_runs.wait()
        assert len(told) == 1 and told[0].pid > 0


async def test_the_lease_of_a_killed_process_ends(tmp_path: Path) -> None:
    """A lease that nobody renews or gives back ends after its seconds."""
    async with bus_at(tmp_path) as bus:
        records = BusChannelRecords(bus, "telegram")
        killed = LeaseHolder(id="killed", host="here", pid=1, since=utc_now())
        await records.put("lease.bot", killed, revision=0, ttl=1)
        done = anyio.Event()

        async def body() -> None:
            done.set()

        with anyio.fail_after(10):
            await AccountLease(records, "bot", seconds=1).run(body)
        assert done.is_set()


class FailingRecords(ScriptedRecords):
    """Records that cannot be written after the lease was taken."""

    error: Exception | None = None

    def fail(self, key: str) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [Unavailable("away"), RecordChanged("taken")])
async def test_a_lease_that_cannot_be_renewed_stops_its_body(error: Exception) -> None:
    """The body is cancelled before the lease ends, whether the bus is away or another process has the lease."""
    records = FailingRecords()
    records.before_write = records.fail
    cancelled_at = 0.0

    async def body() -> None:
        nonlocal cancelled_at
        records.error = error
        try:
            await anyio.sleep(30)
        finally:
            cancelled_at = anyio.current_time()

    started_at = anyio.current_time()
    with pytest.raises(LeaseLost):
        await AccountLease(records, "bot", seconds=1).run(body)
    assert 0.2 <= cancelled_at - started_at < 1.0


async def test_an_error_of_the_body_gives_the_lease_back() -> None:
    """What the body raises is raised, and the next process needs not wait."""
    records = ScriptedRecords()

    async def body() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await AccountLease(records, "bot").run(body)
    assert await records.list("lease", LeaseHolder) == []
