"""Approvals as a channel sees them that a worker runs: at the time of the owner's preferences, and not when settled."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.buses import bus_at
from trunkline.api.testing import wait_until
from trunkline.contracts.approvals.messages import Approval, Settlement
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.blocks.notice_preferences import NoticePreferences
from trunkline.workers.channels.routed_gateway import RoutedGateway
from trunkline_bus import Bus, new_id

pytestmark = pytest.mark.anyio


def asked(id: str) -> Approval:
    """An approval that waits."""
    now = datetime.now(UTC)
    return Approval(
        id=id, turn=new_id("turn"), call="call", call_hash="hash", tool="send_mail", block="main", conversation="conv",
        channel="http", actor="owner", question="?", asked_at=now, expires_at=now + timedelta(hours=1),
    )  # fmt: skip


async def publish(bus: Bus, approval: Approval) -> None:
    """Publish the state of an approval, as a monitor does."""
    await bus.append(APPROVAL, approval, approval=approval.id)


def settled(approval: Approval) -> Approval:
    """The approval with a decision."""
    return msgspec.structs.replace(approval, settled=Settlement(allow=True, by="owner", at=datetime.now(UTC)))


@asynccontextmanager
async def watching(bus: Bus, channel: str, preferences: NoticePreferences) -> AsyncIterator[list[Approval]]:
    """What a channel is told."""
    told: list[Approval] = []

    async def known() -> NoticePreferences:
        return preferences

    async with anyio.create_task_group() as tasks:
        gateway = RoutedGateway(bus, channel, tasks, known)

        async def watch() -> None:
            async with aclosing(gateway.approvals()) as approvals:
                async for approval in approvals:
                    told.append(approval)

        tasks.start_soon(watch)
        yield told
        tasks.cancel_scope.cancel()


async def test_the_next_channel_is_told_of_what_nobody_decided(tmp_path: Path) -> None:
    """The first channel is told at once. The second one is told later, and only of what still waits."""
    preferences = NoticePreferences(channels=("first", "second"), escalate_minutes=10)
    with anyio.fail_after(60):
        async with (
            bus_at(tmp_path) as bus,
            watching(bus, "first", preferences) as first,
            watching(bus, "second", preferences) as second,
            watching(bus, "other", preferences) as other,
        ):
            quick = asked("quick")
            slow = msgspec.structs.replace(asked("slowly"), asked_at=quick.asked_at - timedelta(minutes=11))
            await publish(bus, quick)
            await wait_until(lambda: bool(first))
            assert second == []
            await publish(bus, settled(quick))
            await publish(bus, slow)
            await wait_until(lambda: bool(second))
            await publish(bus, settled(slow))
            await wait_until(lambda: len(second) == 2 and len(first) == 4)
    assert [(one.id, one.settled is not None) for one in second] == [("slowly", False), ("slowly", True)]
    assert other == []


async def test_a_restart_tells_of_what_still_waits(tmp_path: Path) -> None:
    """The time of an approval counts from its question, not from the start of the channel."""
    now = datetime.now(UTC)
    quiet = NoticePreferences(quiet="00:00-23:59", time_zone="UTC")
    urgent = msgspec.structs.replace(quiet, urgent=("approval",))
    with anyio.fail_after(60):
        async with bus_at(tmp_path) as bus:
            waits = msgspec.structs.replace(asked("waits"), asked_at=now + timedelta(days=2))
            await publish(bus, waits)
            async with watching(bus, "bell", quiet) as told:
                await publish(bus, msgspec.structs.replace(asked("past"), asked_at=now - timedelta(days=1)))
                await wait_until(lambda: [one.id for one in told] == ["past"])
            async with watching(bus, "bell", urgent) as told:
                await publish(bus, asked("urgent"))
                await wait_until(lambda: "urgent" in [one.id for one in told])
                assert "waits" not in [one.id for one in told]
