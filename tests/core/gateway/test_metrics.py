"""``/metrics``: counters for Prometheus, without any text of a conversation."""

import re
from datetime import UTC, datetime, timedelta

import anyio
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    ToolFinished,
    TurnFinished,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ErrorCode
from trunkline.telemetry import semconv
from trunkline.telemetry.prometheus import Exposition
from trunkline.telemetry.turn_metrics import MAX_MODELS, TurnMetrics
from trunkline.testing.platform import Platform, platform

LINE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)+\})? [0-9.e+-]+|# (HELP|TYPE) [a-z_]+ .+')
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """The numbers by name and labels. A label without a value is none, and the order of labels says nothing."""
    return {
        (sample.name, frozenset((key, value) for key, value in sample.labels.items() if value)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def has(text: str, *lines: str) -> bool:
    """Report whether these lines are in the text, in any spelling."""
    return samples("\n".join(lines) + "\n").items() <= samples(text).items()


class Meter(TurnMetrics):
    """Counts into Prometheus' text."""

    def __init__(self) -> None:
        self.measured = Exposition()
        super().__init__(self.measured)

    def text(self) -> str:
        return self.measured.text()


def reported(meter: Meter, turn: str, *steps: tuple[float, JournalEntry]) -> None:
    for seconds, entry in steps:
        record = TurnRecord(turn=turn, epoch=1, owner="m", entries=(entry,))
        meter.record(record, BEGIN + timedelta(seconds=seconds))


def started(model: str = "openai/gpt-5") -> TurnStarted:
    message = Message(id="m", role="user", content="a secret")
    request = TurnRequested(
        turn="t", block="garden", conversation="c", message=message, actor="ann", channel="test"
    )
    return TurnStarted(request=request, model=model)


def answered(meter: Meter, turn: str, model: str = "openai/gpt-5") -> None:
    usage = Usage(input_tokens=100, output_tokens=4)
    reported(
        meter, turn,
        (0, started(model)), (0, ModelCallPlanned(step=0)),
        (0.02, ModelCallFinished(step=0, text="a secret", usage=usage, first_chunk=0.015)),
        (0.3, TurnFinished(reason="stop", usage=usage)),
    )  # fmt: skip


def test_a_model_call_is_counted_under_the_names_of_the_conventions() -> None:
    """Tokens by kind, the time of the call, the turn; buckets count up; every line is well formed."""
    meter = Meter()
    answered(meter, "turn_1")
    answered(meter, "turn_2")
    text = meter.text()
    call = 'gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="gpt-5"'
    for line in (
        f'gen_ai_client_token_usage_bucket{{{call},gen_ai_token_type="input",le="64"}} 0',
        f'gen_ai_client_token_usage_bucket{{{call},gen_ai_token_type="input",le="256"}} 2',
        f'gen_ai_client_token_usage_bucket{{{call},gen_ai_token_type="input",le="+Inf"}} 2',
        f'gen_ai_client_token_usage_sum{{{call},gen_ai_token_type="input"}} 200',
        f'gen_ai_client_token_usage_bucket{{{call},gen_ai_token_type="output",le="4"}} 2',
        f'gen_ai_client_operation_duration_seconds_bucket{{{call},error_type="",le="0.01"}} 0',
        f'gen_ai_client_operation_duration_seconds_bucket{{{call},error_type="",le="0.02"}} 2',
        f'gen_ai_client_operation_duration_seconds_count{{{call},error_type=""}} 2',
        f'gen_ai_client_operation_time_to_first_chunk_seconds_bucket{{{call},le="0.01"}} 0',
        f'gen_ai_client_operation_time_to_first_chunk_seconds_bucket{{{call},le="0.02"}} 2',
        "trunkline_turns_started_total 2",
        'trunkline_turns_finished_total{reason="stop",error_type=""} 2',
        'trunkline_turn_duration_seconds_bucket{le="0.5"} 2',
    ):
        assert has(text, line), line
    assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []
    assert text.endswith("\n") and "secret" not in text and "garden" not in text and "ann" not in text


def test_a_failure_has_its_code_and_no_more() -> None:
    """The fixed code, never a provider's words."""
    meter = Meter()
    failed = ModelCallFailed(step=0, code=ErrorCode.RATE_LIMITED, fault="a secret", partial="a secret")
    reported(meter, "t", (0, started()), (0, ModelCallPlanned(step=0)), (1, failed))
    reported(meter, "t", (1, TurnFinished(reason="error", code=ErrorCode.RATE_LIMITED)))
    meter.record_unreadable()
    text = meter.text()
    call = 'gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="gpt-5"'
    assert has(text, f'gen_ai_client_operation_duration_seconds_count{{{call},error_type="rate_limited"}} 1')
    assert "secret" not in text
    assert has(text, 'trunkline_turns_finished_total{reason="error",error_type="rate_limited"} 1')
    assert has(text, "trunkline_journal_unreadable_total 1")


def test_names_cannot_break_out_or_fill_the_store() -> None:
    """A client may choose a model's name: quotes and line breaks are escaped, and beyond a hundred names all share
    one series."""
    meter = Meter()
    answered(meter, "turn", 'x/evil"} 1\nfake_metric 9\\')
    for number in range(2 * MAX_MODELS):
        answered(meter, f"turn_{number}", f"openai/model-{number}")
    text = meter.text()
    assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []
    assert len(set(re.findall(r'request_model="([^"]*)"', text))) <= MAX_MODELS + 1
    assert 'gen_ai_provider_name="other"' in text


def test_tool_calls_and_decisions_are_counted_by_kind() -> None:
    """The tool's effect and the outcome; an outcome that an earlier version recorded has no effect. No tool's name."""
    meter = Meter()
    wrote = ToolOutcome(call="k", status="ok", output="a secret", effect="write")
    for outcome in (wrote, wrote, ToolOutcome(call="k", status="unknown")):
        reported(meter, "t", (0, ToolFinished(call_id="c", outcome=outcome)))
    reported(meter, "t", (0, ApprovalAsked(call_id="c", call_hash="h", question="a secret?")))
    reported(meter, "t", (0, ApprovalRecorded(call_id="c", allow=False, by="ann")))
    text = meter.text()
    assert has(text, 'trunkline_tool_calls_total{effect="write",status="ok"} 2')
    assert has(text, 'trunkline_tool_calls_total{effect="unknown",status="unknown"} 1')
    assert has(text, "trunkline_approvals_asked_total 1")
    assert has(text, 'trunkline_approvals_decided_total{allowed="false"} 1') and "secret" not in text


def test_a_gauge_shows_the_current_value_only() -> None:
    """The last number counts."""
    measured = Exposition()
    measured.add(semconv.WORKERS, 2, {semconv.KIND: "tools", semconv.DRAINING: "false"})
    measured.add(semconv.WORKERS, 1, {semconv.KIND: "tools", semconv.DRAINING: "false"})
    assert has(measured.text(), 'trunkline_workers{kind="tools",draining="false"} 1')


def test_every_metric_has_one_definition() -> None:
    """One name each, in both spellings, and a histogram has bounds."""
    assert len({measure.name for measure in semconv.METRICS}) == len(semconv.METRICS)
    assert len({measure.prometheus for measure in semconv.METRICS}) == len(semconv.METRICS)
    assert all(bool(measure.bounds) == (measure.kind == "histogram") for measure in semconv.METRICS)


async def scraped(running: Platform, token: bool = True) -> httpx.Response:
    headers = {"authorization": f"Bearer {running.token}"} if token else {}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as client:
        return await client.get("/metrics")


def stand_in(text: str, *lines: str) -> bool:
    """Report whether the text contains each of these: a whole line, or the beginning of one."""
    return all(has(text, line) if line.endswith("\n") else line in text for line in lines)


async def scraped_until(running: Platform, *lines: str) -> str:
    """The text as soon as it has these lines; a beat or a record may come a moment later than the answer."""
    text = ""
    with anyio.move_on_after(60):
        while not stand_in(text, *lines):
            text = (await scraped(running)).text
    assert stand_in(text, *lines), text
    return text


@pytest.mark.anyio
async def test_a_scrape_counts_events_since_the_first() -> None:
    """Behind the door by default; counting begins with the first look, and nothing is counted twice."""
    async with platform() as running:
        assert (await scraped(running, token=False)).status_code == 401
        await running.say("before the first look")
        first = await scraped(running)
        assert first.status_code == 200, first.text
        assert first.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert has(first.text, "trunkline_turns_started_total 0")
        await running.say("a secret word")
        await running.say("/tool write_file path=a.md content=secret")
        counted = (
            "trunkline_turns_started_total 2\n",
            'trunkline_turns_finished_total{reason="stop",error_type=""} 2\n',
            'trunkline_tool_calls_total{effect="write",status="ok"} 1\n',
            "gen_ai_client_operation_duration_seconds_count",
            "gen_ai_client_operation_time_to_first_chunk_seconds_count",
            "trunkline_inbox_messages 0\n", "trunkline_dead_letters 0\n",
            'trunkline_stream_size_bytes{stream="JOURNAL"}',
            'trunkline_workers{kind="monitor",draining="false"} 1\n',
            'trunkline_workers{kind="channels",draining="true"} 0\n',
            'trunkline_worker_restarts{kind="monitor"} 0\n',
        )  # fmt: skip
        for _ in range(2):
            text = await scraped_until(running, *counted)
            assert "secret" not in text
        assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []


@pytest.mark.anyio
@pytest.mark.parametrize(("setting", "without", "with_token"), [("open", 200, 200), ("off", 401, 404)])
async def test_access_to_metrics_is_a_setting(setting: str, without: int, with_token: int) -> None:
    """Metrics are open to every client of the port, or absent; other paths need the credential either way."""
    async with platform(config={"gateway.metrics": setting}, workers=("gateway", "memory")) as running:
        assert (await scraped(running, token=False)).status_code == without
        assert (await scraped(running)).status_code == with_token
        async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
            assert (await client.get("/conversations")).status_code == 401
            assert (await client.post("/metrics")).status_code in (401, 404, 405)
