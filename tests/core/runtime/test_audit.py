"""The audit log under a flood: what must be kept line by line is kept so, the rest at least as a number."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import UNSET

import trunkline
from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.streams import AUDIT_STREAM
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.topology import topology
from trunkline.runtime.audit_log import MOST_WAITING, AuditLog, new_entry
from trunkline.runtime.audit_reader import AuditFilter, read_entries
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool
from trunkline.workers.memory import log_writer
from trunkline_bus import Bus, apply
from trunkline_bus.streams.admin import resend
from trunkline_bus.streams.jetstream import request_api as jetstream

pytestmark = pytest.mark.anyio

TIMEOUT = 90.0
PLAIN = "p4ssW0rd9xQ2"
READS = 600


class Tools:
    """A tool that reads and one that writes."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def look(text: str) -> str:
            """Look."""
            return text

        @trunkline.tool(effect="write")
        async def change(text: str) -> str:
            """Change."""
            return text

        return [look, change]


@pytest.fixture
async def running() -> AsyncIterator[Platform]:
    async with platform(plugins=[Tools()], workers=("memory", "tools", "gateway")) as running:
        yield running


async def lines(bus: Bus) -> list[AuditEntry]:
    return [stored.data async for stored in bus.history(AUDIT)]


async def until(due: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(TIMEOUT):
        while not await due():  # noqa: ASYNC110 - what is waited for is on the server
            await anyio.sleep(0.1)


def number_of(found: Sequence[AuditEntry]) -> int:
    return sum(line.count if isinstance(line.count, int) else 1 for line in found)


async def test_unstorable_audit_entries_are_retried_or_counted(running: Platform) -> None:
    """While the stream is missing the queue fills up. Then reads are counted by their kind, and a writer of an
    effect waits. Once the stream is back all lines of the queue, the counts and the effect are there."""
    audit = AuditLog(running.bus, "standard", Redactor())
    await jetstream(running.bus.link, f"STREAM.DELETE.{AUDIT_STREAM}")
    noted = anyio.Event()

    async def effect() -> None:
        await audit.record(event="call", block="main", actor="owner", tool="pay", effect="write", status="ok")
        noted.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(audit.run)
        for number in range(MOST_WAITING):
            await audit.record(
                event="approval", block="main", actor="owner", call=str(number), decision="approved"
            )
        tasks.start_soon(effect)
        async with anyio.create_task_group() as readers:
            for number in range(READS):
                actor = f"agent:{number % 2}"
                readers.start_soon(_note_read, audit, actor)
        assert not noted.is_set(), "an effect was noted though there was no place for its line"
        await apply(running.bus, topology())
        await until(lambda: _all_there(running.bus, MOST_WAITING + READS + 1))
        tasks.cancel_scope.cancel()
    found = await lines(running.bus)
    assert noted.is_set() and [line.tool for line in found if line.effect == "write"] == ["pay"]
    assert {line.call for line in found if line.event == "approval"} == set(map(str, range(MOST_WAITING)))
    counted = [line for line in found if line.count is not UNSET]
    assert {line.actor for line in counted} == {"agent:0", "agent:1"}
    for line in counted:
        assert (line.tool, line.effect, line.status) == ("look", "read", "ok")
        assert line.first is not UNSET and line.first <= line.at


async def _note_read(audit: AuditLog, actor: str) -> None:
    await audit.record(event="call", block="main", actor=actor, tool="look", effect="read", status="ok")


async def _all_there(bus: Bus, count: int) -> bool:
    return number_of(await lines(bus)) >= count


async def test_thousands_of_refused_reads_around_a_write(running: Platform) -> None:
    """The log has each of them, line by line or counted, and the write."""
    refused, wrote = Counter[str](), list[ToolOutcome]()
    limit = anyio.CapacityLimiter(500)

    async def read(number: int) -> None:
        async with limit:
            outcome = await call_tool(
                running.bus, "look", {"text": 7, "other": number}, conversation="conv_flood"
            )
            refused[outcome.status] += 1

    async def write() -> None:
        wrote.append(await call_tool(running.bus, "change", {"text": "x"}))

    async with anyio.create_task_group() as tasks:
        for number in range(3_000):
            if number == 1_500:
                tasks.start_soon(write)
            tasks.start_soon(read, number)
    assert refused == {"error": 3_000} and wrote[0].status == "ok"
    await until(lambda: _has_calls(running.bus, 3_001))
    found = [line for line in await lines(running.bus) if line.event == "call"]
    assert number_of(found) == 3_001
    assert [line.call for line in found if line.effect == "write"] == [wrote[0].call]


async def _has_calls(bus: Bus, count: int) -> bool:
    return number_of([line for line in await lines(bus) if line.event == "call"]) >= count


async def test_lines_that_memory_never_had_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the stream lost lines before they were in memory, the log says how many."""
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 3_600.0)
    async with platform(tmp_path, workers=("memory", "gateway")) as running:
        for _ in range(10):
            line = new_entry(event="approval", block="main", actor="owner")
            await running.bus.append(AUDIT, line, msg_id=line.id, block="main")
        await jetstream(running.bus.link, f"STREAM.PURGE.{AUDIT_STREAM}", {"seq": 9})
        note = running.home.cache / "audit.seq"
    note.write_text("2")
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 0.2)
    async with platform(tmp_path, workers=("memory", "gateway")):
        await until(lambda: _has_lost(tmp_path))
    text = "".join(file.read_text() for file in (tmp_path / "memory/audit").glob("*.jsonl"))
    lost = [one for one in map(json.loads, text.splitlines()) if one["event"] == "lost"]
    assert [one["count"] for one in lost] == [6]


async def test_an_entry_that_cannot_be_decoded_is_counted_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries around it are in memory, and the owner can list them."""
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 0.2)
    async with platform(tmp_path, workers=("memory", "gateway")) as running:
        kept = [new_entry(event="approval", block="main", actor="owner") for _ in range(2)]
        await running.bus.append(AUDIT, kept[0], msg_id=kept[0].id, block="main")
        for number, broken in enumerate((b"{ half", b'{"id": "x"}')):
            await resend(running.bus, AUDIT, broken, msg_id=f"broken-{number}", headers={}, block="main")
        await running.bus.append(AUDIT, kept[1], msg_id=kept[1].id, block="main")
        await until(lambda: _in_memory(tmp_path, kept[1].id))
        listed = await read_entries(running.bus, AuditFilter(since=kept[0].at))
    text = "".join(file.read_text() for file in (tmp_path / "memory/audit").glob("*.jsonl"))
    written = [json.loads(line) for line in text.splitlines()]
    assert {entry.id for entry in kept} <= {one["id"] for one in written}
    lost = [one for one in written if one["event"] == "lost"]
    assert sum(one["count"] for one in lost) == 2
    assert all("could not be decoded" in one["why"] for one in lost)
    assert {entry.id for entry in kept} | {one["id"] for one in lost} <= {entry.id for entry in listed}


async def _in_memory(home: Path, id: str) -> bool:
    return any(id in file.read_text() for file in (home / "memory/audit").glob("*.jsonl"))


async def _has_lost(home: Path) -> bool:
    return any('"lost"' in file.read_text() for file in (home / "memory/audit").glob("*.jsonl"))


async def test_no_secret_is_on_the_stream(running: Platform) -> None:
    """The stream contains no secret recognized by its form or by its name; also where only its beginning would be
    shown."""
    key = "sk-proj-4fZ9mQ2xT7vB1nK8wR5yH3cL6dJ0sA"
    await call_tool(running.bus, "look", {"text": f"Take {key} or https://me:{PLAIN}@example.org/"})
    await call_tool(running.bus, "look", {"text": "x" * 190 + f" {key}"})
    await call_tool(running.bus, "nosuch", {"password": PLAIN, "k": key})

    async def all_there() -> bool:
        return len([line for line in await lines(running.bus) if line.arguments]) >= 3

    await until(all_there)
    reported = str([line.arguments for line in await lines(running.bus)])
    assert "sk-proj" not in reported and PLAIN not in reported
    assert "Take [REDACTED]" in reported and "example.org" in reported and "(229 characters)" in reported
