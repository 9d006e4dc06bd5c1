"""The test question of ``trunkline init`` is a request to a model like any other: recorded, priced and limited."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.testing.platform import Platform
from trunkline.testing.scripted_provider import ScriptedProvider

from .conftest import Cli, Run

pytestmark = pytest.mark.anyio

PRICES = """
[models.prices."openai/tiny"]
input = 10
output = 10
"""


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as found:
        yield found


@pytest.fixture
def ask(provider: ScriptedProvider) -> tuple[str, ...]:
    """The arguments that set the provider up and ask it."""
    return (
        "init", "--yes", "--adapter", "openai", "--base-url", provider.url, "--model", "tiny", "--test", "--json",
    )  # fmt: skip


def probes(costs: str) -> dict[str, Any]:
    """The row of test questions in ``trunkline costs --by purpose --json``."""
    (row,) = [row for row in json.loads(costs)["rows"] if row["key"] == "probe"]
    return dict(row)


def test_the_question_is_in_the_ledger_with_its_cost(
    trunkline: Run, home: Path, provider: ScriptedProvider, ask: tuple[str, ...]
) -> None:
    """No platform runs before or after it. The answer is limited to a few tokens."""
    home.mkdir()
    (home / "trunkline.toml").write_text(PRICES)
    done = trunkline(*ask)
    assert done.returncode == 0 and json.loads(done.stdout)["answer"]["text"], done.stderr
    body = provider.requests[0].body
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 512
    row = probes(trunkline("costs", "--by", "purpose", "--json").stdout)
    tokens = row["usage"]["input_tokens"] + row["usage"]["output_tokens"]
    assert row["requests"] == 1 and row["cost"] == 10 * tokens > 0


def test_a_used_up_budget_refuses_the_question(
    trunkline: Run, home: Path, provider: ScriptedProvider, ask: tuple[str, ...]
) -> None:
    """The first question uses the budget up; the second one is not sent, and the owner reads how the budget opens."""
    home.mkdir()
    (home / "trunkline.toml").write_text(f"[plugins.budget]\nmax_daily_spend = 0.0001\n{PRICES}")
    assert trunkline(*ask).returncode == 0
    done = trunkline(*ask)
    problem = json.loads(done.stdout)["answer"]["problem"]
    assert done.returncode == 1 and len(provider.requests) == 1
    assert "it was not asked. The budget of all blocks for today is used up" in problem
    assert '"trunkline budget reset"' in problem


async def test_a_platform_that_runs_has_the_question_in_its_ledger(
    running: Platform, cli: Cli, provider: ScriptedProvider, ask: tuple[str, ...]
) -> None:
    """It runs with its earlier settings; the model of the new ones is asked, and recorded at once."""
    answer = json.loads(await cli(*ask))["answer"]
    assert (answer["adapter"], bool(answer["text"]), len(provider.requests)) == ("openai", True, 1)
    assert probes(await cli("costs", "--by", "purpose", "--json"))["requests"] == 1
