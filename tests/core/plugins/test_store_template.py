"""The store that ``plugins new store`` writes is the example, whose tests run the contract suite."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/trunkline-onefile/src/trunkline_onefile"
TEMPLATE = ROOT / "core/trunkline/cli/templates/store/src/trunkline_sample"


@pytest.mark.parametrize("module", ["conversation", "records", "state", "store"])
def test_the_template_is_the_example(module: str) -> None:
    """Only the name of the package and the blank lines between imports differ."""
    example = (EXAMPLE / f"{module}.py").read_text(encoding="utf-8").replace("onefile", "sample")
    assert lines(TEMPLATE / f"{module}.py") == [line for line in example.splitlines() if line]


def lines(file: Path) -> list[str]:
    """The lines that are not empty."""
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line]
