"""Metrics and traces at a real OTLP receiver, from workers that are processes of their own."""

import sys
from pathlib import Path

import anyio
import pytest

from tests.support.processes import process_platform
from trunkline.telemetry import semconv
from trunkline.telemetry.otlp_settings import is_exported

sys.path.insert(0, str(Path(__file__).parent))

from collector import Taken, collector

SECRET = "tulip-4711"
SEEN = (
    semconv.TOKEN_USAGE, semconv.OPERATION_DURATION, semconv.FIRST_CHUNK, semconv.TURNS_STARTED, semconv.TURNS_FINISHED,
    semconv.TURN_DURATION, semconv.TOOL_CALLS, semconv.TOOL_DURATION, semconv.WORKERS, semconv.RESTARTS,
    semconv.INBOX_MESSAGES, semconv.INBOX_LAG, semconv.DEAD_LETTERS, semconv.STREAM_SIZE,
)  # fmt: skip
"""What two turns with a tool call leave behind; the rest is counted only when it happens."""


def complete(taken: Taken) -> bool:
    have = {point.metric for point in taken.points}
    return (
        {measure.name for measure in SEEN} - {semconv.TOKEN_USAGE.name} <= have
        and taken.total(semconv.TURNS_FINISHED.name, reason="stop") == 2
        and taken.total(semconv.WORKERS.name, draining="false") == 5
        and any(span.name.startswith("execute_tool") for span in taken.spans)
        and taken.total(semconv.TOOL_DURATION.name, effect="write") == 1
        and sum(span.name.startswith("invoke_agent") for span in taken.spans) == 2
    )


@pytest.mark.anyio
async def test_each_worker_exports_its_own_metrics_and_spans(tmp_path: Path) -> None:
    """The standard variables apply: every process exports under its own service and instance, in the conventions'
    names and units, once each, with the recommended bounds; the two turns' spans too. None of it contains message
    text."""
    with collector() as taken:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": taken.address,
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        async with process_platform(tmp_path, environ=environ) as running:
            await running.say(f"my secret is {SECRET}")
            await running.say(f"/tool write_file path={SECRET}.md content={SECRET}")
            with anyio.fail_after(60):
                while not complete(taken):  # noqa: ASYNC110  another thread takes it in
                    await anyio.sleep(0.05)
        points = list(taken.points)
    services = {str(point.resource[semconv.SERVICE_NAME]) for point in points}
    assert {"trunkline-monitor", "trunkline-tools", "trunkline-gateway"} <= services
    instances = {(p.resource[semconv.SERVICE_NAME], p.resource[semconv.SERVICE_INSTANCE]) for p in points}
    assert len(instances) == len(services)
    assert taken.total(semconv.TURNS_STARTED.name) == 2
    assert taken.total(semconv.TOOL_CALLS.name, effect="write", status="ok") == 1
    assert taken.total(semconv.TOOL_DURATION.name, effect="write") == 1
    table = {measure.name: measure for measure in semconv.METRICS}
    ours = [point for point in points if point.metric in table]
    assert all(point.unit == table[point.metric].unit for point in ours)
    assert all(point.bounds == table[point.metric].bounds for point in ours if point.bounds)
    keys = {key for point in ours for key in point.attributes}
    assert not keys & {
        semconv.TURN,
        semconv.GEN_AI_CONVERSATION_ID,
        semconv.GEN_AI_TOOL_NAME,
        "block",
        "actor",
    }
    turns = [span.trace for span in taken.spans if span.name.startswith("invoke_agent")]
    assert len(set(turns)) == 2
    assert not any(SECRET.encode() in body for body in taken.bodies)


@pytest.mark.parametrize(
    ("environ", "traces", "metrics"),
    [
        ({}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, True, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}, False, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, True, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, False, False),
    ],
)
def test_the_standard_variables_decide_what_is_exported(
    environ: dict[str, str], traces: bool, metrics: bool
) -> None:
    """They set one endpoint for both signals, one for each, or none."""
    assert (is_exported("traces", environ), is_exported("metrics", environ)) == (traces, metrics)
