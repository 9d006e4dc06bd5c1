"""The tools: what they save, what the owner is shown before, and what nobody can do without the owner."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.block_client import BlockClient, client_of_new_block
from tests.integration.approval_helpers import question_of
from trunkline.api.memory import utc_now
from trunkline.api.schedule import schedule_path
from trunkline.api.text import unwrap_tool_result
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.errors import ToolError
from trunkline.testing.platform import Platform
from trunkline.testing.tool_calls import call_tool
from trunkline_bus import new_id

from .pulse_platform import ended_run, pulse_platform, texts_of, write_schedule_file

pytestmark = pytest.mark.anyio

PULSE = {
    "id": "briefing",
    "instruction": "Brief me.",
    "when": "every weekday at 8",
    "time_zone": "Europe/Lisbon",
}


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    async with pulse_platform(
        **{"permissions.approvals": "some", "permissions.allow_shell": True}
    ) as running:
        yield running


@pytest.fixture
async def client(shared: Platform) -> BlockClient:
    return await client_of_new_block(shared)


async def approved(client: BlockClient, tool: str, **arguments: Any) -> tuple[ToolOutcome, str]:
    """Return the question about a call, and its result after the owner has approved it."""
    call = new_id("call")
    asked = await call_tool(client.bus, tool, arguments, call=call, block=client.block)
    assert asked.status == "approval", asked.output
    done = await call_tool(
        client.bus, tool, arguments, call=call, block=client.block, approved=asked.call_hash
    )
    assert done.status == "ok", done.output
    return asked, done.output


async def listed(client: BlockClient, tool: str) -> list[dict[str, Any]]:
    outcome = await call_tool(client.bus, tool, {}, block=client.block)
    assert outcome.status == "ok", outcome.output
    found: list[dict[str, Any]] = json.loads(unwrap_tool_result(outcome.output))
    return found


async def test_MB_F7_a_pulse_is_set_listed_and_removed(client: BlockClient) -> None:
    """The owner is asked about each change, sees the resolved times, and nobody else can approve it."""
    asked, said = await approved(client, "set_pulse", **PULSE)
    shown = asked.detail
    assert shown is not None and shown.owner_only and not shown.shape
    assert "cron 0 8 * * 1-5 (Europe/Lisbon)" in shown.text and "08:00:00 WE" in shown.text
    assert said.startswith("Saved the schedule briefing: cron 0 8 * * 1-5, next ")
    (found,) = await listed(client, "list_pulses")
    assert found["id"] == "briefing" and found["type"] == "cron" and "08:00:00" in found["next"]
    await approved(client, "remove_pulse", id="briefing")
    assert await listed(client, "list_pulses") == []


async def test_MB_F7_cron_jobs_have_lists_and_ranges_and_a_target(client: BlockClient) -> None:
    """The target is the channel that tells the owner (MB-D12)."""
    job = {
        "name": "report",
        "cron_expression": "*/5 9-17 * * 1-5,7",
        "instruction": "Report.",
        "target": "telegram",
    }
    await approved(client, "schedule_cron_job", **job)
    text = (await block_memory(client.bus, client.block, "owner").read("schedules/report.toml")).content
    assert 'channel = "telegram"' in text and 'cron = "*/5 9-17 * * 1-5,7"' in text
    assert [one["id"] for one in await listed(client, "list_cron_jobs")] == ["report"]
    await approved(client, "remove_cron_job", name="report")
    assert await listed(client, "list_cron_jobs") == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"when": "soon"}, "every weekday at 8"),
        ({"when": "in 20 minutes"}, 'Call again with when="'),
        ({"when": "", "cron_expression": "99 * * * *"}, "no cron line"),
        ({"when": "2020-01-01 09:00"}, "its time has passed"),
        ({"time_zone": "Mars/Olympus"}, "no time zone"),
        ({"condition": "moon > 1"}, "no condition"),
        ({"id": "../x"}, "A schedule's name"),
        ({"interval": 60}, "Say once when"),
    ],
)
async def test_a_call_without_a_valid_schedule_is_refused_unasked(
    client: BlockClient, changes: dict[str, Any], why: str
) -> None:
    """It is refused before the owner is asked, with what to write instead."""
    refused = await call_tool(client.bus, "set_pulse", {**PULSE, **changes}, block=client.block)
    assert refused.status == "error" and why in refused.output


async def test_no_file_tool_writes_a_schedule(client: BlockClient) -> None:
    """What runs in the owner's name is not changed by a tool that writes memory, in any spelling of the path."""
    memory = block_memory(client.bus, client.block, "agent")
    for path in (
        "schedules/x.toml",
        "Schedules/x.toml",
        f"/{schedule_path(client.block, 'x')}",
        "./schedules/a/b.md",
    ):
        with pytest.raises(ToolError, match="only the owner"):
            await memory.write(path, 'instruction = "x"\nevery = 60\n')


async def test_MB_T17_a_script_needs_the_approval_that_a_person_needs(client: BlockClient) -> None:
    """The question is about ``execute_command``, with the script. A denial runs nothing."""
    due = f"{utc_now() + timedelta(seconds=4):%Y-%m-%dT%H:%M:%SZ}"
    script = f'type = "script"\ninstruction = "echo done > proof.txt"\nat = {due}\n'
    await write_schedule_file(client.bus, client.block, "script", script)
    approval = await _question_in(client)
    assert approval.tool == "execute_command" and "echo done > proof.txt" in approval.detail.text
    by_person = await client.send(
        '/tool execute_command json={"command": ["sh", "-c", "echo done > proof.txt"]}'
    )
    same = await question_of(client, by_person)
    assert (same.tool, same.detail.text) == (approval.tool, approval.detail.text)
    for one in (approval, same):
        await client.gateway.decide(one.turn, one.call, one.call_hash, allow=False)
    run = await ended_run(client, "script")
    assert "execute_command failed" in (await texts_of(client, run))[-1]
    assert not (client.workspace / "proof.txt").exists()


async def _question_in(client: BlockClient) -> Any:
    """Wait for a question of the block."""
    import anyio

    with anyio.fail_after(60):
        while True:
            for approval in await client.gateway.waiting():
                if approval.block == client.block:
                    return approval
            await anyio.sleep(0.05)
