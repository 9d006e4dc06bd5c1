"""Sections of plugins name models and blocks; those that do not exist are told, with the line and the likely name."""

from pathlib import Path

from trunkline.config import load_config
from trunkline.plugins import Plugins

SETTINGS = """
[adapters.ollama]
model = "qwen3:8b"

[plugins.failover.fallbacks]
"ollama" = ["olama/llama3.2", "offline"]

[plugins.budget.blocks.gardn]
max_daily_spend = 1.0

[plugins.budget.blocks.main]
max_daily_spend = 1.0
"""


def missing(home: Path) -> list[str]:
    return [str(problem) for problem in Plugins.load(load_config(home, environ={})).missing_references()]


def test_names_that_nothing_has_are_told(tmp_path: Path) -> None:
    """A limit of a block that does not exist limits nothing, and a fallback that cannot be asked answers nothing."""
    (tmp_path / "trunkline.toml").write_text(SETTINGS)
    (tmp_path / "memory" / "blocks" / "garden").mkdir(parents=True)
    block, model = sorted(missing(tmp_path))
    assert "plugins.budget.blocks.gardn names the block 'gardn', which does not exist" in block
    assert "line 8" in block and "Did you mean garden?" in block
    assert "names 'olama/llama3.2', whose adapter is not set up" in model and "Did you mean ollama?" in model
    (tmp_path / "memory" / "blocks" / "gardn").mkdir()
    assert len(missing(tmp_path)) == 1


def test_a_machine_without_memory_judges_no_block(tmp_path: Path) -> None:
    """A monitor of its own has no files of memory."""
    (tmp_path / "trunkline.toml").write_text(SETTINGS)
    assert not any("block" in problem.partition(" names ")[2] for problem in missing(tmp_path))
