"""``trunkline budget``: its output for a new user. The program runs on a separate home."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.testing.platform import clean_environ


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def budget(home: Path, settings: str, *words: str) -> "subprocess.CompletedProcess[str]":
    (home / "trunkline.toml").write_text(f"[gateway]\nport = 0\n[plugins.budget]\n{settings}\n")
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", "budget", *words],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home), "COLUMNS": "100"},
        capture_output=True, text=True, timeout=60, check=False, cwd=home.parent,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("max_turn_spend = 0.0005", "Limits: each turn at most $0.0005 in all."),
        ("max_turn_loops = 9", "Limits: each turn at most 9 calls of models in all."),
        ("per_block.max_daily_spend = 0.5", "Limits: each block at most $0.50 a day."),
        ("", "No budget is set: models may be called without limit."),
    ],
)
def test_a_limit_without_a_row_is_told(home: Path, line: str, said: str) -> None:
    """A limit of each turn or of each block limits models, though nothing has been used of it yet."""
    shown = budget(home, line)
    assert shown.returncode == 0 and said in shown.stderr
    assert ("No budget is set" in shown.stderr) is (line == "")


def test_a_misspelt_block_is_not_reset(home: Path) -> None:
    """Nothing is recorded for a block that nothing is known of."""
    refused = budget(home, "per_block.max_daily_spend = 0.5", "reset", "--block", "gardn")
    assert refused.returncode == 1 and "Block gardn has no budget of its own" in refused.stderr
    assert "was used up or reset" in budget(home, "max_daily_spend = 1", "history").stderr


@pytest.mark.parametrize(
    ("line", "why"),
    [("max_daily_spend =", "not valid TOML"), ("max_daily_spend = 0", "must be a number >= 0.0001")],
)
def test_settings_that_cannot_be_read_name_their_line(home: Path, line: str, why: str) -> None:
    """The command of a plugin says what is wrong, and not that there is no such command."""
    refused = budget(home, line)
    assert refused.returncode == 1 and why in refused.stderr and "line 4" in refused.stderr


def test_a_limit_is_changed_without_editing_a_file(home: Path) -> None:
    """``set`` counts before trunkline.toml until it is set back. A number that cannot be is refused with the reason."""
    changed = budget(home, "max_daily_spend = 5", "set", "max_daily_spend", "7.5")
    assert changed.returncode == 0 and "all blocks at most $7.50 a day" in changed.stderr + changed.stdout
    for number, why in (
        ("0", "max_daily_spend cannot be 0"),
        ("nan", "cannot be nan"),
        ("many", "is no number"),
    ):
        refused = budget(home, "max_daily_spend = 5", "set", "max_daily_spend", number)
        assert refused.returncode == 1 and why in refused.stderr
    shown = budget(home, "max_daily_spend = 5", "set", "max_daily_spend", "6", "--json")
    [spend] = [one for one in json.loads(shown.stdout)["limits"] if one["key"] == "max_daily_spend"]
    assert (spend["value"], spend["configured"]) == (6, 5)
    back = budget(home, "max_daily_spend = 5", "set", "max_daily_spend", "default")
    assert back.returncode == 0 and "all blocks at most $5.00 a day" in back.stderr + back.stdout
