"""Everything that an installation writes by itself has a bound, and the bound is kept."""

import json
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx
import pytest

from trunkline.cli.checks.bus_checks import streams_capacity
from trunkline.cli.checks.check import CheckContext
from trunkline.cli.log_file import log_to_file
from trunkline.config import InvalidConfig, load_config
from trunkline.contracts.retention import MEGABYTE, Retention
from trunkline.contracts.streams import STREAMS
from trunkline.contracts.topology import DAY_SECONDS, topology
from trunkline.contracts.turns.feed_messages import FeedItem, TextDelta
from trunkline.contracts.turns.journal_messages import TurnRecord
from trunkline.contracts.turns.subjects import FEED, JOURNAL
from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import CLAIM_STORE, SPANS
from trunkline.runtime.overview import OverviewReader
from trunkline.testing.platform import Platform, platform
from trunkline_bus import Bus
from trunkline_bus.streams.admin import StreamState, stream_state
from trunkline_bus.streams.jetstream import request_api

pytestmark = pytest.mark.anyio

PIECE = "x" * 30_000
SMALL = 0.25

Write = Callable[[Platform, int], Awaitable[object]]


async def journal(running: Platform, number: int) -> None:
    record = TurnRecord(turn=f"turn_{number}", epoch=1, owner=PIECE, entries=())
    await running.bus.append(JOURNAL, record, conversation="c", turn=f"turn_{number}")


async def feed(running: Platform, number: int) -> None:
    item = FeedItem(turn="t", epoch=1, index=number, event=TextDelta(step=0, offset=0, text=PIECE))
    await running.bus.append(FEED, item, conversation="c", turn=f"turn_{number}")


async def spans(running: Platform, number: int) -> None:
    span = SpanRecord(trace_id="t", span_id="s", name=PIECE, kind="server", service="s", start=1, end=2)
    await running.bus.append(SPANS, SpanBatch(spans=(span,)), trace=f"trace{number}")


@pytest.mark.parametrize(
    ("stream", "setting", "write"),
    [("JOURNAL", "journal_mb", journal), ("FEED", "feed_mb", feed), ("SPANS", "trace_mb", spans)],
)
async def test_a_stream_never_grows_above_its_size(stream: str, setting: str, write: Write) -> None:
    """Written far beyond it, it holds the newest and forgets the oldest; doctor and top say how full it is."""
    async with platform(config={f"retention.{setting}": SMALL}, workers=("memory",)) as running:
        for number in range(30):
            await write(running, number)
            assert (await stream_state(running.bus, stream)).bytes <= SMALL * MEGABYTE
        state = await stream_state(running.bus, stream)
        assert 0 < state.messages < 30 and state.fullness > 0.5
        seen = {one.name: one for one in (await OverviewReader(running.bus).read()).streams}
        assert seen[stream].max_bytes == SMALL * MEGABYTE and seen[stream].max_age
        patient = CheckContext(running.config, running.home, False, None, bus=running.bus)  # type: ignore[arg-type]
        found = await streams_capacity(patient)
        assert found is not None
        assert (found.status, stream in found.summary) == (
            ("warning", True) if state.fullness > 0.9 else ("ok", False)
        )


async def test_doctor_names_a_stream_that_is_missing() -> None:
    """An operator deleted it: doctor says which one and what creates it."""
    async with platform(workers=("memory",)) as running:
        await request_api(running.bus.link, "STREAM.DELETE.FACTS")
        context = CheckContext(running.config, running.home, False, None, bus=running.bus)  # type: ignore[arg-type]
        found = await streams_capacity(context)
        assert found is not None and found.status == "error"
        assert "FACTS is missing" in found.summary and "Restart Trunkline" in found.hint


async def waiting(bus: Bus) -> int:
    """Return the number of messages in the inbox."""
    return (await stream_state(bus, "INBOX")).messages


async def test_a_full_inbox_refuses_and_drops_nothing() -> None:
    """No monitor runs, so accepted messages stay; the next one is refused with a code, and accepted when there is
    room."""
    async with platform(
        config={"retention.inbox_mb": SMALL}, workers=("gateway", "memory", "tools")
    ) as running:
        headers = {"authorization": f"Bearer {running.token}"}
        accepted, refusals = 0, list[httpx.Response]()
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:

            async def post() -> None:
                body = {"model": "main", "messages": [{"role": "user", "content": PIECE}], "stream": False}
                refusals.append(await http.post("/v1/chat/completions", json=body))

            while not refusals and accepted < 30:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(post)  # who is taken waits for an answer that never comes
                    with anyio.fail_after(60):
                        while not refusals and await waiting(running.bus) == accepted:  # noqa: ASYNC110
                            await anyio.sleep(0.02)
                    tasks.cancel_scope.cancel()
                accepted += not refusals
        (refused,) = refusals
        assert refused.status_code in (500, 503, 507), refused
        assert "storage" in refused.text and PIECE not in refused.text
        state = await stream_state(running.bus, "INBOX")
        assert state.messages == accepted > 2 and state.refuses and state.bytes <= SMALL * MEGABYTE


async def test_a_changed_limit_applies_from_the_next_start(tmp_path: Path) -> None:
    """The stream is changed, and the excess is removed; a larger limit again loses nothing more."""
    async with platform(tmp_path, workers=("memory",)) as running:
        for number in range(20):
            await journal(running, number)
    async with platform(tmp_path, config={"retention.journal_mb": SMALL}, workers=("memory",)) as running:
        state = await stream_state(running.bus, "JOURNAL")
        assert state.bytes <= SMALL * MEGABYTE and 0 < state.messages < 20
    settings = {"retention.journal_mb": 50, "retention.journal_days": 2}
    async with platform(tmp_path, config=settings, workers=("memory",)) as running:
        after = await stream_state(running.bus, "JOURNAL")
        assert after.messages == state.messages and after.max_age == 2 * DAY_SECONDS


def test_every_stream_and_store_has_a_size() -> None:
    """Everything that the server stores on disk has a bound; an object named by a journal or dead letter outlives
    both."""
    kept = topology(retention=Retention(journal_days=90, dead_letter_days=120))
    assert all(stream.max_bytes for stream in kept.streams)
    # A message waits until it is answered, and a schedule until it is due, which may be in years.
    assert {stream.name for stream in kept.streams if stream.max_age is None} == {"INBOX", "SCHEDULES"}
    claims = next(store for store in kept.objects if store.name == CLAIM_STORE.name)
    assert claims.max_bytes and claims.ttl == 120 * DAY_SECONDS
    assert all(store.ttl for store in kept.objects)
    assert all(bucket.storage == "memory" or bucket.max_bytes for bucket in kept.buckets)
    # An access token counts until it expires or is revoked, so no age removes its record. The same holds for a chat
    # that is linked to the owner; what a channel has sent expires by itself. A push subscription ends with its session,
    # a lasting agent when its conversation ends it, and the state of a schedule with its file.
    lasting = {bucket.name for bucket in kept.buckets if not bucket.ttl}
    assert lasting == {
        "agents",
        "channels",
        "passkeys",
        "push-subscriptions",
        "schedules",
        "senders",
        "tokens",
    }
    assert len(kept.streams) == len(STREAMS)


@pytest.mark.parametrize("setting", ["journal_mb", "journal_days", "log_files", "log_mb"])
def test_a_limit_of_zero_is_refused(setting: str, tmp_path: Path) -> None:
    """A zero would keep nothing at all, or everything."""
    with pytest.raises(InvalidConfig, match=setting):
        load_config(tmp_path, flags={f"retention.{setting}": 0}, environ={})


def test_log_files_are_bounded_and_old_ones_removed(tmp_path: Path) -> None:
    """A log never takes more than its files may; an unused one is removed, others are not changed."""
    import logging

    config = load_config(tmp_path, flags={"retention.log_mb": 0.05, "retention.log_files": 2}, environ={})
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, age in (("gone.log", 31), ("gone.log.1", 31), ("fresh.log", 29), ("notes.txt", 400)):
        (logs / name).write_text("old")
        moment = time.time() - age * 86_400
        os.utime(logs / name, (moment, moment))
    with log_to_file(config, "say"):
        for _ in range(100):
            logging.getLogger("test").info(PIECE[:10_000])
    assert {path.name for path in logs.iterdir()} == {
        "say.log",
        "say.log.1",
        "say.log.2",
        "fresh.log",
        "notes.txt",
    }
    assert all(path.stat().st_size <= 0.05 * MEGABYTE for path in logs.glob("say.log*"))
    assert json.loads((logs / "say.log").read_text().splitlines()[-1])["logger"] == "test"


def test_fill_level_of_a_stream() -> None:
    """The level is by size; a stream without a limit is never full."""
    now = datetime.now(UTC)
    assert StreamState(name="s", messages=1, bytes=50, at=now, max_bytes=100).fullness == 0.5
    assert StreamState(name="s", messages=1, bytes=50, at=now).fullness == 0
