"""A full disk during conversations. Memory's disk: accepted messages are stored once memory can be written again.
The bus's disk: a message is refused while there is still room to end the accepted ones."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.chaos.disks import Disk, small_disk, why_not
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.cli.checks.runner import run_checks
from trunkline.config import load_config
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import NOT_STORED
from trunkline.contracts.turns.journal_messages import TurnFinished
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, platform, text_of
from trunkline_bus import RemoteFault

from .shared_platforms import ALL_WORKERS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kill,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
async def platform_with_disk(provider: str, tmp_path: Path) -> AsyncIterator[tuple[ProcessPlatform, Disk]]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    with small_disk(tmp_path / "disk") as disk:
        config["runtime.memory_root"] = str(disk.root)
        async with process_platform(tmp_path / "home", config=config, workers=ALL_WORKERS) as running:
            yield running, disk


async def readiness(running: ProcessPlatform | Platform, status: int) -> dict[str, Any]:
    """Return the body of ``/readyz``, once it answers with this status."""
    async with httpx.AsyncClient() as http:
        with anyio.fail_after(60):
            while True:
                answer = await http.get(f"{running.url}/readyz")
                if answer.status_code == status:
                    checks: dict[str, Any] = answer.json()["checks"]
                    return checks
                await anyio.sleep(0.1)


async def delay_reported(running: ProcessPlatform, accepted: MessageAccepted) -> str:
    """Return the text that a watcher has when it learns that the answer is not stored yet."""
    events: list[Any] = []
    with anyio.fail_after(60):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            events.append(event)
            if event == NOT_STORED:
                break
    return text_of(events)


async def test_answers_that_memory_could_not_store_are_stored_later(
    platform_with_disk: tuple[ProcessPlatform, Disk],
) -> None:
    """The whole answer is shown, with a note that it is not stored yet. It is neither dropped nor overtaken by a
    later message, whichever process dies. When memory can be written, every answer is stored in order, once.
    Readiness and doctor report the state throughout."""
    running, disk = platform_with_disk
    first = await running.say("say:before")
    assert (await readiness(running, 200))["memory"] == "ok"
    disk.fill()
    lost = await running.send("say:not lost", conversation=first.accepted.conversation)
    assert await delay_reported(running, lost) == "not lost"
    assert (await readiness(running, 503))["memory"] == "failing"
    await until_doctor_reports(running, "error", "1 answer waits to be stored")
    later = await running.send("say:later", conversation=lost.conversation)
    other = await running.send("say:another conversation")
    assert await delay_reported(running, other) == "another conversation"
    for name in ("monitor", "gateway", "nats"):
        running.kill(name)
    await running.restart("gateway")
    await running.restart("monitor")
    assert await delay_reported(running, lost) == "not lost"
    assert await finished(running, lost, later, other) == []
    disk.empty()
    answers = [await running.answer(one) for one in (lost, later, other)]
    assert [(one.text, one.ended.code) for one in answers] == [
        ("not lost", None), ("later", None), ("another conversation", None),
    ]  # fmt: skip
    view = await running.gateway.conversation(lost.conversation)
    assert [message.content for message in view.messages] == [
        "say:before", "before", "say:not lost", "not lost", "say:later", "later",
    ]  # fmt: skip
    assert (await readiness(running, 200))["memory"] == "ok"
    await until_doctor_reports(running, "ok", "no answer waits")


async def until_doctor_reports(running: ProcessPlatform, status: str, text: str) -> None:
    """Wait until ``doctor`` reports this about memory's storing: workers publish their state once a second."""
    config = load_config(running.home.path, environ=running.environ)
    with anyio.fail_after(60):
        while True:
            findings = {finding.id: finding for finding in await run_checks(read=lambda: config)}
            found = findings["memory.writes"]
            if found.status == status and text in found.summary:
                return
            await anyio.sleep(0.2)


async def finished(running: ProcessPlatform, *turns: MessageAccepted) -> list[TurnFinished]:
    """The ends of these turns, as the journal has them."""
    ours = {accepted.turn for accepted in turns}
    return [
        entry
        async for stored in running.bus.history(JOURNAL, after=0)
        for entry in stored.data.entries
        if stored.data.turn in ours and isinstance(entry, TurnFinished)
    ]


async def test_a_message_is_refused_while_the_bus_disk_is_nearly_full(tmp_path: Path) -> None:
    """The message is refused at once with ``storage_failure``, and the gateway is not ready; accepted messages are
    answered, and new ones are accepted when there is room again."""
    with small_disk(tmp_path / "disk") as disk:
        config = {"runtime.memory_root": str(tmp_path / "memory"), "runtime.provider_adapter": "offline"}
        async with platform(disk.root / "home", config=config) as running:
            first = await running.say("before")
            await readiness(running, 200)
            disk.fill(spare=4 * 1024 * 1024)
            with pytest.raises(RemoteFault) as refused:
                await running.send("not taken", conversation=first.accepted.conversation)
            assert refused.value.code == ErrorCode.STORAGE_FAILURE
            assert (await readiness(running, 503))["bus"] == "failing"
            assert await running.bus.last(INBOX, conversation=first.accepted.conversation) is None
            disk.empty()
            assert (await running.say("after", conversation=first.accepted.conversation)).ended.code is None
            await readiness(running, 200)
