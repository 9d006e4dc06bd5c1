"""Limits that the owner changes while the platform runs: they count for the next call, and a broken file opens none."""

import anyio
import pytest

from trunkline.api.memory import MEMORY_WRITE_MANY, OWNER, WriteManyMemory
from trunkline.testing.platform import Platform
from trunkline_budget import limits, reconciler
from trunkline_budget.limit_editor import set_limit
from trunkline_budget.limits import LIMITS_FILE, decode_changes
from trunkline_budget.settings import BlockLimits, BudgetSettings

from .test_limits import cents, events, limited, refused, state

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read for each call."""
    monkeypatch.setattr(limits, "FRESH_SECONDS", 0.0)


async def write(running: Platform, text: str | None) -> None:
    """Write the file as a person may, or delete it."""
    files, gone = ({}, (LIMITS_FILE,)) if text is None else ({LIMITS_FILE: text}, ())
    request = WriteManyMemory(files=files, gone=gone, actor=OWNER, reason="by hand")
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=10)


async def test_a_changed_limit_changes_the_breaker() -> None:
    """CC-T17: a raised limit opens a used-up budget for the next call, and a lowered one closes it. Each breach is an
    event of its own."""
    async with limited([cents(10), cents(1)], max_daily_spend=0.10) as (running, plugin):
        await running.say("one")
        refused(await running.say("two"))
        await set_limit(running.bus, "max_daily_spend", 0.20)
        assert (await running.say("three")).text == "done"
        await set_limit(running.bus, "max_daily_spend", 0.05)
        assert "$0.11 of $0.05" in refused(await running.say("four"))
        assert len(plugin.model.requests) == 2
        assert [one.limit for one in await events(running.bus)] == [100_000, 50_000]


async def test_a_new_limit_counts_what_was_spent_before() -> None:
    """Nothing was limited at the start. What the day cost so far counts toward the limit at once."""
    async with limited([cents(5), cents(1)]) as (running, plugin):
        await running.say("one")
        await set_limit(running.bus, "max_daily_spend", 0.05)
        assert "$0.05 of $0.05" in refused(await running.say("two"))
        await set_limit(running.bus, "max_daily_spend", None)
        await set_limit(running.bus, "blocks.main.max_loops_per_hour", 1)
        assert (await running.say("three")).text == "done"
        assert "1 call of models of 1" in refused(await running.say("four"))
        assert len(plugin.model.requests) == 2


async def test_a_new_limit_is_shown_with_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets a limit sees what the day cost so far, before any further call."""
    monkeypatch.setattr(reconciler, "SHORTEST_INTERVAL", 0.1)
    monkeypatch.setattr(reconciler, "LOOK_SECONDS", 0.1)
    async with limited([cents(5)]) as (running, _):
        await running.say("one")
        await set_limit(running.bus, "max_daily_spend", 1.0)
        with anyio.fail_after(15):
            while (await state(running.bus, max_daily_spend=1.0)).used != 50_000:  # noqa: ASYNC110  of the bus
                await anyio.sleep(0.05)


async def test_no_model_is_called_while_the_file_is_broken() -> None:
    """Nobody knows which limit was meant, so the refusal says what to do. Without the file trunkline.toml counts."""
    async with limited([cents(1)], max_daily_spend=1.0) as (running, plugin):
        for text in (
            "", "not json", "null", "[]", '{"max_daily_spend": 0}', '{"max_daily_spend": -1}',
            '{"max_daily_spend": NaN}', '{"max_daily_spend": 1e999}', '{"max_daily_spend": "9"}',
            '{"max_spend": 9}', '{"blocks": {"main": 9}}',
        ):  # fmt: skip
            await write(running, text)
            why = refused(await running.say("one"))
            assert LIMITS_FILE in why and "delete it" in why, text
        assert plugin.model.requests == []
        await write(running, None)
        assert (await running.say("two")).text == "done"


def test_a_limit_of_a_block_keeps_its_other_limits() -> None:
    """One that is changed opens no other: those that the block has by ``per_block`` stay."""
    settings = BudgetSettings(
        max_turn_loops=3, per_block=BlockLimits(max_daily_spend=1.0, max_loops_per_hour=9)
    )
    changed = decode_changes('{"blocks": {"garden": {"max_daily_spend": 2.0}}}').applied_to(settings)
    assert changed.limits_of("garden") == BlockLimits(max_daily_spend=2.0, max_loops_per_hour=9)
    assert changed.limits_of("main") == settings.per_block
    assert changed.max_turn_loops == 3
