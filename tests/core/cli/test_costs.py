"""``trunkline costs``: sums of the ledger, their order, and what is said about them."""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from trunkline.cli.main import cli
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.costs.report_messages import Grouping
from trunkline.runtime.cost_report import CostReport, cost_report, entries_since

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)
START = NOON - timedelta(days=30)


def entry(id: str, cost: int | None = 0, *, days: int = 0, **fields: Any) -> CostEntry:
    default: dict[str, Any] = {"adapter": "openai", "model": "gpt-5.5", "block": "main", "status": "finished"}
    return CostEntry(id=id, at=NOON + timedelta(days=days), cost=cost, **{**default, **fields})


def sums(report: CostReport) -> dict[str, int]:
    return {row.key: row.cost for row in report.rows}


def test_costs_add_up_exactly() -> None:
    """CC-T15: one cent and two cents are three cents, and a million of the smallest costs is a dollar."""
    cents = cost_report([entry("a", 10_000), entry("b", 20_000)], "day", START)
    assert cents.total.cost == 30_000
    many = [entry(str(number), 1) for number in range(1_000)]
    assert cost_report(many, "block", START).total.cost == 1_000


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("block", {"garden": 5, "main": 3}),
        ("model", {"anthropic/claude": 5, "openai/gpt-5.5": 3}),
        ("purpose", {"summary": 6, "turn": 2}),
        ("conversation", {"conv_1": 5, "conv_2": 2, "(none)": 1}),
    ],
)
def test_rows_begin_with_the_most_expensive(by: Grouping, expected: dict[str, int]) -> None:
    """By block, model, purpose and conversation; work without a conversation has a row of its own."""
    found = cost_report(
        [
            entry("a", 1, purpose="summary"),
            entry("b", 2, conversation="conv_2"),
            entry(
                "c",
                5,
                block="garden",
                adapter="anthropic",
                model="claude",
                purpose="summary",
                conversation="conv_1",
            ),
        ],
        by,
        START,
    )
    assert list(sums(found).items()) == list(expected.items())


def test_days_are_in_order_and_without_gaps() -> None:
    """A day without a request has a row, so that a plot has no hidden gaps."""
    found = cost_report([entry("b", 2, days=2), entry("a", 1)], "day", START)
    assert sums(found) == {"2026-11-25": 1, "2026-11-26": 0, "2026-11-27": 2}


def test_an_entry_replaces_an_earlier_one_of_the_request() -> None:
    """A worker that only slept corrects the estimate that another one made for it."""
    guess = entry("a", 900, status="interrupted", estimated=True)
    found = entries_since([guess, entry("a", 7), entry("old", 1, days=-40)], START)
    assert [one.cost for one in found] == [7]


def test_unpriced_requests_are_counted_and_named() -> None:
    """They are not free: the sum says that it does not contain them. A refused request is none of them."""
    found = cost_report(
        [entry("a", None, adapter="x", model="new"), entry("b", None, status="failed"), entry("c", 4)],
        "day",
        START,
    )
    assert (found.total.cost, found.total.unpriced, found.total.failed) == (4, 1, 1)
    assert found.unpriced == ("x/new",)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a ledger of two days, and a line that a person has damaged."""
    today = datetime.now(UTC)
    usage = Usage(input_tokens=1_000, cached_tokens=250, output_tokens=20)
    found = [
        entry("a", 12_345, usage=usage),
        entry("b", None, adapter="mine", model="m"),
        entry("c", 5, status="cancelled", estimated=True),
    ]
    folder = tmp_path / "memory" / "costs"
    folder.mkdir(parents=True)
    for days in (0, 1):
        at = today - timedelta(days=days)
        lines = [
            msgspec.json.encode(msgspec.structs.replace(one, at=at, id=f"{one.id}{days}")) for one in found
        ]
        (folder / f"{at:%Y-%m-%d}.jsonl").write_bytes(b"\n".join([b"{ damaged", *lines]) + b"\n")
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    yield tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["costs", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_table_has_a_plot_a_sum_and_notes(home: Path) -> None:
    """Models in rows, money in dollars, the cached share, and what the sum leaves out."""
    result = run("--by", "model")
    first, second, total = result.stdout.splitlines()[1:4]
    assert first.split() == ["openai/gpt-5.5", "4", "2", "000", "25%", "40", "0.0247", "█" * 24]
    assert second.split() == ["mine/m", "2", "0", "0", "0.0000"] and total.split()[:2] == ["total", "6"]
    assert "not in the sum, because their models have no price: 2 (mine/m)." in result.stderr
    assert "because no answer reached its end: 2." in result.stderr


def test_programs_get_exact_numbers(home: Path) -> None:
    """JSON has micro-USD, CSV dollars with all their digits."""
    report = json.loads(run("--by", "block", "--json").stdout)
    assert report["total"]["cost"] == report["rows"][0]["cost"] == 24_700
    (row,) = csv.DictReader(StringIO(run("--by", "block", "--csv").stdout))
    assert (row["block"], row["usd"], row["requests"], row["unpriced"]) == ("main", "0.024700", "6", "2")


def test_without_requests_there_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new home has no ledger."""
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    result = run()
    assert result.stdout == "" and "No model was asked since" in result.stderr


def test_two_formats_at_once_are_refused() -> None:
    """The options exclude each other."""
    result = CliRunner().invoke(cli, ["costs", "--json", "--csv"])
    assert result.exit_code == 2 and "exclude each other" in result.output
