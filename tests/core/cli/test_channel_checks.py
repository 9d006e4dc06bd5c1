"""The check of channels in ``trunkline doctor``, on a real bus."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.buses import bus_at
from trunkline.api.channel import STATE_PREFIX, AccountState
from trunkline.cli.checks.channel_checks import channels_accounts
from trunkline.cli.checks.check import CheckContext
from trunkline.config import load_config
from trunkline.contracts.channels.records_client import BusChannelRecords
from trunkline.contracts.conversations.messages import utc_now
from trunkline.home.paths import Home

pytestmark = pytest.mark.anyio


async def test_accounts_that_wait_or_fail_are_named(tmp_path: Path) -> None:
    """An account that receives messages is fine; one that does not, or for which a second process waits, is named."""
    config = load_config(tmp_path, environ={})
    async with bus_at(tmp_path / "bus") as bus, AsyncExitStack() as resources:
        context = CheckContext(config, Home.of(config), False, resources, bus=bus)
        assert (await channels_accounts(context)).status == "ok"  # type: ignore[union-attr]
        records = BusChannelRecords(bus, "telegram")
        await records.put(
            f"{STATE_PREFIX}.7.lease", AccountState(state="serving", text="the bot 7", at=utc_now())
        )
        found = await channels_accounts(context)
        assert found is not None and found.status == "ok" and "telegram: the bot 7" in found.summary
        waiting = AccountState(state="waiting", text="the bot 8 is served elsewhere", at=utc_now())
        await records.put(f"{STATE_PREFIX}.8.waiting", waiting)
        found = await channels_accounts(context)
        assert found is not None and found.status == "warning"
        assert found.summary == "telegram: the bot 8 is served elsewhere" and found.hint
