"""Traces of turns whose workers were killed: whole on the bus, and whole at a foreign collector."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline.telemetry.orphan_spans import SpanProcess, find_orphan_spans
from trunkline.telemetry.trace_tree import latest_spans, tree_lines
from trunkline.testing.scripted_provider import provider_process

sys.path.insert(0, str(Path(__file__).parent))

from collector import Span, Taken, collector


def span(id: str, parent: str | None, start: int, end: int, **more: object) -> SpanRecord:
    return SpanRecord(
        trace_id="t", span_id=id, parent_id=parent, name=id, kind="internal", service="s", start=start, end=end,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_an_open_span_ends_with_its_last_child() -> None:
    """An intermediate open span is followed as well. An ended span is not exported again."""
    dead, alive = SpanProcess("here", 1, "monitor_1"), SpanProcess("here", 2, "tools_1")
    batches = [
        SpanBatch(spans=(span("turn", "root", 1, 2, unfinished=True), span("chat", "turn", 2, 2, unfinished=True)),
                  instance=dead.instance, host=dead.host, pid=dead.pid),
        SpanBatch(spans=(span("tool", "turn", 3, 3, unfinished=True), span("tool", "turn", 3, 9)),
                  instance=alive.instance, host=alive.host, pid=alive.pid),
        SpanBatch(spans=(span("read", "chat", 4, 7),), instance=alive.instance, host=alive.host, pid=alive.pid),
    ]  # fmt: skip
    found = find_orphan_spans(batches)
    assert set(found) == {dead}
    assert {one.span_id: one.end for one in found[dead]} == {"turn": 9, "chat": 7}
    assert all(one.attributes[semconv.UNFINISHED] and not one.unfinished for one in found[dead])
    again = SpanBatch(spans=tuple(found[dead]), instance=dead.instance, host=dead.host, pid=dead.pid)
    assert not find_orphan_spans([*batches, again])
    assert "its worker ended early" in tree_lines(found[dead])[0].notes


async def streaming(running: ProcessPlatform, conversation: str, turn: str) -> None:
    with anyio.fail_after(60):
        async for event in running.gateway.watch(conversation, turn):
            if isinstance(event, TextDelta) and "word-3" in event.text:
                return


async def killed_in_mid_turn(running: ProcessPlatform) -> str:
    """A turn whose monitor is killed while it answers, and which another one ends; returns its trace."""
    accepted = await running.send("slow:60:50 ;; say:end")
    await streaming(running, accepted.conversation, accepted.turn)
    await anyio.sleep(1)  # open spans are told four times a second
    running.kill("monitor")
    await running.restart("monitor")
    assert (await running.answer(accepted)).ended.code is None
    batches = [stored async for stored in running.bus.history(SPANS)]
    return next(
        one.keys["trace"]
        for one in batches
        if any(span.attributes.get(semconv.TURN) == accepted.turn for span in one.data.spans)
    )


def orphans(spans: list[Span]) -> list[Span]:
    known = {one.id for one in spans}
    return [one for one in spans if one.parent and one.parent not in known]


async def until(holds: Callable[[], bool]) -> None:
    with anyio.move_on_after(60):
        while not holds():  # noqa: ASYNC110 - another thread takes it in
            await anyio.sleep(0.1)


def of_trace(taken: Taken, trace: str) -> list[Span]:
    return [one for one in taken.spans if one.trace == trace]


@pytest.mark.anyio
@pytest.mark.kill
async def test_open_spans_of_a_killed_worker_are_exported(tmp_path: Path) -> None:
    """Every span of the turn has its parent in the export, as on the bus, and none is there twice. A span left open
    is the killed monitor's, and states that its end is unknown."""
    with collector() as taken, provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai", "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
        }  # fmt: skip
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": taken.address}
        kinds = ("gateway", "monitor", "tools", "memory")
        async with process_platform(tmp_path, config=config, environ=environ, workers=kinds) as running:
            trace = await killed_in_mid_turn(running)

            def reported() -> bool:
                spans = of_trace(taken, trace)
                return any(semconv.UNFINISHED in one.attributes for one in spans) and not orphans(spans)

            await until(reported)
            batches = [stored.data async for stored in running.bus.history(SPANS, after=0, trace=trace)]
    found = of_trace(taken, trace)
    assert not orphans(found), orphans(found)
    ids = Counter(one.id for one in found)
    assert set(ids.values()) == {1}, ids
    open = [one for one in found if semconv.UNFINISHED in one.attributes]
    assert f"{semconv.INVOKE_AGENT} main" in {one.name for one in open}
    assert {one.resource[semconv.SERVICE_NAME] for one in open} == {"trunkline-monitor"}
    assert {one.span_id for one in latest_spans(one for batch in batches for one in batch.spans)} == set(ids)
    roots = [line for line in tree_lines(one for batch in batches for one in batch.spans) if line.depth == 0]
    assert len(roots) == 1
