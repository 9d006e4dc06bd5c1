"""memoryblock's pulse.json and crons.json become files of schedules, all of them off."""

import tomllib
from typing import Any

import pytest

from trunkline.contracts.memory.store import Change
from trunkline_pulse.schedule_file import read_schedule

pytestmark = pytest.mark.anyio

PULSE = {
    "status": "SLEEPING",
    "instructions": [
        {"id": "Water!", "type": "alert", "instruction": "Water the peas.", "interval": 3600, "alertMonitor": True},
        {"id": "weekly", "type": "cron", "instruction": 'Say "hello".', "cronExpression": "0 9 * * 1",
         "expiresAt": "2027-01-01T00:00:00Z", "condition": "memory_percent > 80"},
        {"id": "old", "type": "log", "instruction": "x", "interval": 60, "expiresAt": 1577836800000},
        {"id": "fetch", "type": "webhook", "instruction": "https://example.org/x", "interval": 900.5,
         "alertMonitor": True},
        {"id": "quiet", "type": "alert", "instruction": "Note it.", "interval": 60, "alertMonitor": False},
        {"id": "paused", "type": "script", "instruction": "date", "interval": 60, "enabled": False},
        {"id": "both", "type": "cron", "instruction": "x", "cronExpression": "0 9 1 * 1"},
        {"id": "bad-cron", "type": "cron", "instruction": "x", "cronExpression": "61 * * * *"},
        {"id": "bad-type", "type": "dance", "instruction": "x", "interval": 60},
        {"id": "bad-condition", "type": "log", "instruction": "x", "interval": 60, "condition": "moon > 1"},
        {"id": "no-time", "type": "log", "instruction": "x"},
        {"id": "empty", "type": "log", "interval": 60},
        "no entry",
    ],
}  # fmt: skip
CRONS = [
    {"name": "weekly", "cronExpression": "*/15 8-17 * * 1-5,7", "instruction": "Older.", "target": "kitchen"}
]
NOT_IMPORTED = {"both", "bad-cron", "bad-type", "bad-condition", "no-time", "empty", "entry 13"}


async def schedules(place: Any) -> dict[str, dict[str, Any]]:
    """Return the imported schedules by name, after checking that each is a file that the pulse plugin reads."""
    found = {}
    for path in await place.paths():
        if path.startswith("blocks/garden/schedules/"):
            text = await place.text(path)
            read_schedule(path, text)
            found[path.rpartition("/")[2].removesuffix(".toml")] = tomllib.loads(text)
    return found


async def test_MB_F6_crons_and_pulses_become_schedules_that_are_off(place: Any, write: Any) -> None:
    """Type, time, expiry and condition come along; what has no equivalent is named; a second import adds nothing."""
    write("blocks/garden/monitor.md", "Fern")
    write("blocks/garden/pulse.json", PULSE)
    home = write("blocks/garden/crons.json", CRONS)
    done = await place.bring(home)
    found = await schedules(place)
    older = next(name for name in found if found[name]["instruction"] == "Older.")
    newer = next(name for name in found if found[name]["instruction"] == 'Say "hello".')
    assert {older, newer} > {"weekly"} and older.startswith("weekly") and newer.startswith("weekly")
    assert set(found) == {"water", "old", "fetch", "quiet", "paused", older, newer}
    assert not any(one["enabled"] for one in found.values())
    assert found["water"]["every"] == 3600 and found["water"]["type"] == "alert"
    assert found[older]["cron"] == "*/15 8-17 * * 1-5,7" and found[older]["type"] == "cron"
    assert found[newer]["condition"] == "memory_percent > 80" and found[newer]["expires"].year == 2027
    assert found["old"]["expires"].year == 2020
    assert found["fetch"]["every"] == 900 and found["fetch"]["announce"] is True
    assert found["quiet"]["announce"] is False
    refused = {gap.what.rpartition(": ")[2] for gap in done.gaps if "was not imported" in gap.why}
    assert refused == NOT_IMPORTED
    assert any("'kitchen'" in gap.why for gap in done.gaps)
    assert any("resume water --block garden" in (gap.hint or "") for gap in done.gaps)
    before = {path: await place.text(path) for path in await place.paths()}
    await place.bring(home)
    assert {path: await place.text(path) for path in await place.paths()} == before


async def test_an_import_does_not_switch_a_resumed_schedule_off(place: Any, write: Any) -> None:
    """A later import keeps what the owner changed."""
    write("blocks/garden/monitor.md", "Fern")
    home = write("blocks/garden/pulse.json", PULSE)
    await place.bring(home)
    path = "blocks/garden/schedules/water.toml"
    resumed = (await place.text(path)).replace("enabled = false", "")
    await place.store.change(Change({path: resumed.encode()}, actor="owner", reason=""))
    write("blocks/garden/pulse.json", {**PULSE, "status": "ACTIVE"})
    await place.bring(home)
    assert await place.text(path) == resumed


@pytest.mark.parametrize("content", ["[", {"instructions": 7}, [], [7, None]])
async def test_a_damaged_schedule_file_ends_no_import(place: Any, write: Any, content: object) -> None:
    """The rest of the block is imported."""
    write("blocks/garden/monitor.md", "Fern")
    await place.bring(write("blocks/garden/crons.json", content))
    assert await place.text("blocks/garden/monitor.md") == "Fern"
    assert await schedules(place) == {}


async def test_odd_values_end_no_import(place: Any, write: Any) -> None:
    """A schedule that is named like a secret comes along; a time that no clock has and an endless number are named."""
    write("blocks/garden/monitor.md", "Fern")
    entries = [
        {"id": "refresh-token", "type": "log", "instruction": "Delete \x7f.", "interval": 60},
        {"id": "never", "type": "log", "instruction": "x", "interval": 60, "expiresAt": "9999-12-31T23:59:59-05:00"},
        {"id": "endless", "type": "cron", "instruction": "x", "cronExpression": f"{'9' * 5000} * * * *"},
    ]  # fmt: skip
    done = await place.bring(write("blocks/garden/pulse.json", {"instructions": entries}))
    found = await schedules(place)
    assert set(found) == {"refresh-token"} and found["refresh-token"]["instruction"] == "Delete \x7f."
    refused = {gap.what.rpartition(": ")[2] for gap in done.gaps if "was not imported" in gap.why}
    assert refused == {"never", "endless"}
